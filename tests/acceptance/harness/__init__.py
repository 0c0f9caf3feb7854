"""What the acceptance tests stand on: models, servers, clients and load."""
