"""A dictionary of three million objects, of which a few are wanted much more often than the others (Zipf's law, exponent 1)."""
import random

COUNT = 3_000_000
# Strings for keys and values, built in an order that has nothing to do with how often they are wanted.
numbers = list(range(COUNT))
random.seed(1)
random.shuffle(numbers)
table = {f"user:{number}": f"session of {number}, last seen today" for number in numbers}
del numbers
print("loaded", flush=True)
length = 0
while True:
    length += len(table[f"user:{int(COUNT ** random.random()) - 1}"])
