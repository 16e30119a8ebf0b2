"""The pattern language: parses text to syntax trees and prints them."""
