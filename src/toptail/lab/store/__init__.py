"""Folders of results: JSON and arrays that are written whole and used again only if they fit."""
