#!/usr/bin/env python3
"""The portfolio of inputs/trading*.ini a second time: its environment in NumPy, baselines, a player of the
models that lockstep trained, and PPO of stable-baselines3 with the decks' networks and keys.

    pip install stable-baselines3 sb3-contrib gymnasium
    python tests/peers/trading.py datasets/sp500.h5 baselines
    python tests/peers/trading.py datasets/sp500.h5 play runs/trading_small/best.h5
    python tests/peers/trading.py datasets/sp500.h5 learn [--deck trading_cascade] [--seed 0]
        [--episodes 1000] [--seconds CPU]
"""
import argparse
import datetime
import time

import gymnasium
import h5py
import numpy as np

UNIT, FEE, LARGEST, CASH = 10_000, 1_000, 100, 1_000_000  # hundredths of a cent; millionths; shares
DAYS, HISTORY, QUANTILE, EPISODE = 30, 252, 0.9, 250
# What differs between the decks; sizes are those of [model], keys those of stable-baselines3.
DECKS = {
    "trading_small": dict(window=1, sizes=None, episodes=1000,
                          keys=dict(batch_size=512, n_epochs=10, learning_rate=1e-3, ent_coef=0.0)),
    "trading_cascade": dict(window=10, sizes=dict(series=32, features=32, units=64), episodes=1000,
                            keys=dict(batch_size=512, n_epochs=10, learning_rate=1e-3, ent_coef=0.0)),
    "trading": dict(window=30, sizes=dict(series=128, features=128, units=512), episodes=5000,
                    keys=dict(batch_size=2048, n_epochs=4, learning_rate=3e-4, ent_coef=0.01, clip_range_vf=0.2)),
}
TRADE_FROM = datetime.datetime(2016, 1, 1, tzinfo=datetime.timezone.utc).timestamp()


def smoothed(values, share):
    result = np.empty_like(values)
    result[0] = values[0]
    for t in range(1, len(values)):
        result[t] = result[t - 1] + share * (values[t] - result[t - 1])
    return result


def over(part, whole, otherwise=0.0):
    return np.divide(part, whole, out=np.full_like(part, otherwise), where=whole != 0)


class Market:
    """Prices [days, assets] and what is seen of them; CCI and ADX of closing prices alone."""

    def __init__(self, path):
        with h5py.File(path) as file:
            rows, offsets, times = (file[name][:] for name in ("inputs", "inputs_offsets", "time"))
        close = np.stack([rows[a:b, 0] for a, b in zip(offsets, offsets[1:])], 1).astype(float)
        times = times[:len(close)]
        self.prices = np.rint(close * UNIT).astype(np.int64)
        self.traded = int(np.searchsorted(times, TRADE_FROM))
        change = np.diff(close, axis=0, prepend=close[:1])
        rise, fall = smoothed(np.maximum(change, 0), 1 / DAYS), smoothed(np.maximum(-change, 0), 1 / DAYS)
        windows = [close[max(0, t + 1 - DAYS):t + 1] for t in range(len(close))]
        off = np.stack([np.abs(w - w.mean(0)).mean(0) for w in windows])
        channel = over(close - np.stack([w.mean(0) for w in windows]), 0.015 * off)
        size = smoothed(np.abs(change), 1 / DAYS)
        up, down = over(rise, size), over(fall, size)
        direction = smoothed(100 * over(np.abs(up - down), up + down), 1 / DAYS)
        macd = smoothed(close, 2 / 13) - smoothed(close, 2 / 27)
        self.features = np.concatenate([
            np.log(close / close[0]), 20 * macd / close, (100 * over(rise, rise + fall, 0.5) - 50) / 25,
            channel / 100, direction / 50], 1).astype(np.float32)
        relative = close[1:] / close[:-1] - 1
        turbulence = np.zeros(len(close))
        for day in range(HISTORY + 1, len(close)):
            before = relative[day - 1 - HISTORY:day - 1]
            apart = relative[day - 1] - before.mean(0)
            turbulence[day] = apart @ np.linalg.solve(np.cov(before.T), apart)
        self.calm = turbulence < np.quantile(turbulence[HISTORY + 1:self.traded], QUANTILE)


class Trading(gymnasium.Env):
    def __init__(self, market, window=1, training=True):
        self.market, self.window, self.training = market, window, training
        assets = market.prices.shape[1]
        self.first, self.last = (0, market.traded - 1) if training else (market.traded, len(market.prices) - 1)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (window, 1 + 6 * assets), np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, (assets,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        length = EPISODE if self.training else self.last - self.first
        self.day = self.first + int(self.np_random.integers(self.last - self.first - length + 1))
        self.end = self.day + length
        self.cash, self.shares = CASH * UNIT, np.zeros(self.market.prices.shape[1], np.int64)
        self.past = [(self.cash, self.shares)] * self.window
        return self.observation(), {}

    def observation(self):
        rows = []
        for back in reversed(range(self.window)):
            seen = max(self.day - back, 0)
            cash, shares = self.past[self.window - 1 - back]
            rows.append(np.concatenate([[cash], shares * self.market.prices[seen]]) / (CASH * UNIT))
            rows[-1] = np.concatenate([rows[-1], self.market.features[seen]])
        return np.stack(rows).astype(np.float32)

    def trade(self, asset, count, price):
        """Buys, or sells below 0; the fee is rounded up."""
        if count < 0:
            count = -min(-count, int(self.shares[asset]))
        else:
            count = min(count, self.cash // price)
            while count > 0 and count * price - (-count * price * FEE // 1_000_000) > self.cash:
                count -= 1
        moved = abs(count) * price
        self.shares[asset] += count
        self.cash -= count * price - (-moved * FEE // 1_000_000)

    def step(self, action):
        today = [int(price) for price in self.market.prices[self.day]]
        worth = self.cash + int(self.shares @ self.market.prices[self.day])
        self.shares = self.shares.copy()
        if self.market.calm[self.day]:
            wanted = (np.clip(action.astype(float), -1, 1) * LARGEST).astype(int)
        else:
            wanted = -self.shares
        order = np.argsort(-wanted, kind="stable")
        for asset in order[::-1]:
            if wanted[asset] < 0:
                self.trade(asset, int(wanted[asset]), today[asset])
        for asset in order:
            if wanted[asset] > 0:
                self.trade(asset, int(wanted[asset]), today[asset])
        self.day += 1
        self.past = [*self.past[1:], (self.cash, self.shares)]
        gain = self.cash + int(self.shares @ self.market.prices[self.day]) - worth
        return self.observation(), gain / UNIT * 1e-4, False, self.day == self.end, {}


def played(environment, act, seed=0):
    """The return of an episode."""
    seen, _ = environment.reset(seed=seed)
    total, over_ = 0.0, False
    while not over_:
        seen, reward, _, over_, _ = environment.step(act(seen))
        total += reward
    return total


def drawdown(worth):
    return float((1 - worth / np.maximum.accumulate(worth)).max())


def baselines(market, options):
    training, trading = Trading(market), Trading(market, training=False)
    means = []
    for seed in range(20):
        draws = np.random.default_rng(seed)
        act = lambda seen: draws.standard_normal(training.action_space.shape)
        means.append(np.mean([played(training, act, 1000 * seed + i) for i in range(options.episodes or 16)]))
    print(f"random, training episodes: mean {np.mean(means):.3f}, deviation of 20 seeds {np.std(means, ddof=1):.3f}")
    draws = np.random.default_rng(0)
    found = [played(trading, lambda seen: draws.standard_normal(training.action_space.shape)) for _ in range(20)]
    print(f"random, trading period: {np.mean(found):.2f}, deviation {np.std(found, ddof=1):.2f}")
    most = np.ones(training.action_space.shape)
    print(f"always buys, training episodes: {np.mean([played(training, lambda seen: most, i) for i in range(100)]):.2f}"
          f"; trading period: {played(trading, lambda seen: most):.2f}")
    held = (market.prices[trading.first:] / market.prices[trading.first]).mean(1)
    print(f"buy and hold, equal parts, trading period: {100 * (held[-1] - 1):.2f}, drawdown {100 * drawdown(held):.1f} %")


def play(market, options):
    with h5py.File(options.model) as file:
        layers = [[file[f"model/actor/{name}/{part}"][:] for part in ("weight", "bias")]
                  for name in ("hidden1", "hidden2", "output")]

    def act(seen):
        x = seen.ravel()
        for weight, bias in layers[:-1]:
            x = np.tanh(weight @ x + bias)
        return layers[-1][0] @ x + layers[-1][1]

    trading, training = Trading(market, training=False), Trading(market)
    print(f"trading period: return {played(trading, act):.4f}; "
          f"training episodes: {np.mean([played(training, act, i) for i in range(100)]):.3f}")


def learn(market, options):
    import torch
    from sb3_contrib import RecurrentPPO
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from torch import nn

    class Cascade(BaseFeaturesExtractor):
        def __init__(self, space, series, features):
            super().__init__(space, features)
            window, width = space.shape
            self.series = nn.LSTM(width, series, batch_first=True)
            self.layers = nn.Sequential(nn.Linear(window * series, features), nn.Tanh(),
                                        nn.Linear(features, features), nn.Tanh(),
                                        nn.Linear(features, features), nn.Tanh())

        def forward(self, seen):
            return self.layers(self.series(seen)[0].flatten(1))

    class Told(BaseCallback):
        def _on_rollout_end(self):
            finished.extend(each["r"] for each in self.model.ep_info_buffer)
            self.model.ep_info_buffer.clear()

        def _on_step(self):
            return len(finished) < episodes and time.process_time() - started < options.seconds

    torch.set_num_threads(1)
    deck = DECKS[options.deck]
    window, sizes, episodes = deck["window"], deck["sizes"], options.episodes or deck["episodes"]
    keys = dict(n_steps=128, seed=options.seed, device="cpu") | deck["keys"]
    made = make_vec_env(lambda: Trading(market, window), 16, seed=options.seed)
    finished, started = [], time.process_time()
    if sizes:
        model = RecurrentPPO("MlpLstmPolicy", made, policy_kwargs=dict(
            features_extractor_class=Cascade,
            features_extractor_kwargs=dict(series=sizes["series"], features=sizes["features"]),
            lstm_hidden_size=sizes["units"], enable_critic_lstm=True, net_arch=dict(pi=[64], vf=[64])), **keys)
    else:
        model = PPO("MlpPolicy", made, policy_kwargs=dict(net_arch=dict(pi=[64, 64], vf=[64, 64])), **keys)
    model.learn(10**9, callback=Told())
    seconds = time.process_time() - started
    late = finished[-160:]
    trading = make_vec_env(lambda: Trading(market, window, training=False), 1)
    print(f"test: trading period {evaluate_policy(model, trading, 1, deterministic=True)[0]:.4f} with the last model; "
          f"last {len(late)} of {len(finished)} training episodes {np.mean(late):.3f}, first 160 "
          f"{np.mean(finished[:160]):.3f}; {seconds:.0f} CPU s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("what", choices=("baselines", "play", "learn"))
    parser.add_argument("model", nargs="?")
    parser.add_argument("--deck", default="trading_small", choices=DECKS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=np.inf)
    options = parser.parse_args()
    {"baselines": baselines, "play": play, "learn": learn}[options.what](Market(options.data), options)


if __name__ == "__main__":
    main()
