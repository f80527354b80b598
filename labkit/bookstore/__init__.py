"""The service of lesson 10: orders counted once, bestsellers by page and by cursor."""

from labkit.bookstore.app import create_app
from labkit.bookstore.process import Service, serving
from labkit.bookstore.shop import Shop
from labkit.bookstore.store import open_store

__all__ = ["Service", "Shop", "create_app", "open_store", "serving"]
