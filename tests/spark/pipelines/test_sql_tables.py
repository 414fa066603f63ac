"""The tables that a query names."""

from __future__ import annotations

import pytest

from aiokwire.spark.pipelines.sql_tables import tables


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("select * from orders", ["orders"]),
        ("SELECT * FROM Orders o JOIN `payments` p ON o.id = p.id", ["Orders", "payments"]),
        ("select a.x, b.y from orders a, payments as b, default.rates where a.x in (1, 2)", ["orders", "payments"]),
        ("select * from a left outer join b using (x, y), c", ["a", "b", "c"]),
        ("from orders select id", ["orders"]),
        ("select * from (select id, n from orders where n > 1) t join (payments p) on true", ["orders", "payments"]),
        ("select extract(hour from at), trim(both ' ' from name), substring(x from 2) from orders", ["orders"]),
        ("select a is distinct from b, 'from nowhere', \"join x\" from orders -- from comment", ["orders"]),
        ("select * /* from old */ from orders", ["orders"]),
        ("with big as (select * from orders where n > 5), small (id, n) as (select * from orders) "
         "select * from big join small on big.id = small.id", ["orders"]),
        ("select window.start, count(*) from orders group by window(at, '1 hour'), carrier", ["orders"]),
        ("select * from orders union all select * from old_orders order by id, n", ["orders", "old_orders"]),
        ("select item, n from orders lateral view explode(items) t as item, rest", ["orders"]),
        ("select * from range(5) join explode(array(1)) cross join orders", ["orders"]),
        ("select * from orders where exists (select 1 from payments p where p.id = orders.id)", ["orders", "payments"]),
        ("select count(*) as orders, sum(n) as payments from sales", ["sales"]),
        ("select * from spark_catalog . default . airlines", []),
        ("select * from values (1, 2) as t(a, b)", []),
        ("select * from orders join lateral (select 1)", ["orders"]),
        ("select 'it''s from x', 'a\\'b from y' from orders", ["orders"]),
        ("select 1", []),
    ],
)  # fmt: skip
def test_tables_of_a_query(sql: str, wanted: list[str]) -> None:
    assert tables(sql) == wanted
