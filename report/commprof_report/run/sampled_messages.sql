-- What else is known of sampled calls: the messages that they send or receive.
SELECT rowid AS place, * FROM sample_message;
