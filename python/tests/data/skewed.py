"""What skewed.rec is of: freehold record -o skewed.rec -- python3 -S -E skewed.py"""

import mmap
import random
import time

hot, cold = mmap.mmap(-1, 2 << 20), mmap.mmap(-1, 10 << 20)
for of in (hot, cold):
    for at in range(0, len(of), 4096):
        of[at] = 1
until = time.monotonic() + 4
while time.monotonic() < until:
    for _ in range(2000):
        hot[random.randrange(len(hot))] = 2
    cold[random.randrange(len(cold))] = 3
