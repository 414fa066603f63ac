"""Logins by Kerberos with a key distribution center of MIT Kerberos on loopback."""
