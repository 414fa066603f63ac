# Everything here is for the compiled modules beside it; Python reaches it through RecordBatch and BatchBuilder.
