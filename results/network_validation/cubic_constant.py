#!/usr/bin/env python3
"""The mean window of CUBIC (RFC 9438) under loss, as a multiple of (RTT/p)^0.75, by following its
window function from loss to loss: at equal distances, where the RFC has 1.054, and at random ones."""
import random

C, BETA = 0.4, 0.7


def constant(p, rtt, equal, fast_convergence, losses=40000):
    random.seed(1)
    window = last = 100.0
    time = area = 0.0
    for _ in range(losses):
        top = window * (1 + BETA) / 2 if fast_convergence and window < last else window
        last = window
        k = max(0.0, (top - BETA * window) / C) ** (1 / 3)
        packets = 1 / p if equal else random.expovariate(p)

        def sent(t):
            return (C * ((t - k) ** 4 - k**4) / 4 + top * t) / rtt

        low, high = 0.0, 1.0
        while sent(high) < packets:
            high *= 2
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if sent(middle) < packets else (low, middle)
        time += high
        area += packets * rtt
        window = max(2.0, C * (high - k) ** 3 + top)
    return area / time / (rtt / p) ** 0.75


if __name__ == "__main__":
    for equal, fast in ((True, True), (False, True), (False, False)):
        print("losses at", "equal" if equal else "random", "distances,",
              "with" if fast else "without", "fast convergence:",
              f"{constant(1e-4, 0.1, equal, fast):.3f}")
