#!/usr/bin/env python3
"""PPO of stable-baselines3 on the environments of inputs/*.ini: the keys of its zoo, the transitions of
the deck, and the same test, 100 episodes with the likeliest actions by the best model of 16 validations.

    pip install stable-baselines3 sb3-contrib gymnasium
    python tests/peers/ppo.py cartpole [--seed 0] [--transitions 102400]     # or cartpole_masked, acrobot, pendulum
"""
import argparse
import copy
import time

import gymnasium
import numpy as np
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

VALIDATIONS, EPISODES, TEST_EPISODES = 16, 20, 100


def falling(value):
    return lambda left: left * value


POLE = dict(n_steps=32, batch_size=256, gae_lambda=0.8, gamma=0.98, n_epochs=20, ent_coef=0.0,
            learning_rate=falling(0.001), clip_range=falling(0.2))
RECIPES = {  # environment, transitions, concurrent environments, normalised, keys
    "cartpole": ("CartPole-v1", 102_400, 8, False, POLE),
    "cartpole_masked": ("CartPole-v1", 102_400, 8, True, POLE | dict(policy_kwargs=dict(
        ortho_init=False, activation_fn=torch.nn.ReLU, lstm_hidden_size=64, enable_critic_lstm=True,
        net_arch=dict(pi=[64], vf=[64])))),
    "acrobot": ("Acrobot-v1", 512_000, 16, True, dict(n_steps=256, gae_lambda=0.94, gamma=0.99, n_epochs=4,
                                                      ent_coef=0.0)),
    "pendulum": ("Pendulum-v1", 204_800, 4, False, dict(
        n_steps=1024, gae_lambda=0.95, gamma=0.9, n_epochs=10, ent_coef=0.0, learning_rate=0.001,
        clip_range=0.2, use_sde=True, sde_sample_freq=4)),
}


class PositionsOnly(gymnasium.ObservationWrapper):
    """A pole whose speeds are not seen."""

    def __init__(self, environment):
        super().__init__(environment)
        box = environment.observation_space
        self.observation_space = gymnasium.spaces.Box(box.low[[0, 2]], box.high[[0, 2]])

    def observation(self, observation):
        return observation[[0, 2]]


def environments(options, count, seed):
    name, _, _, normalised, _ = RECIPES[options.deck]
    wrapper = PositionsOnly if options.deck == "cartpole_masked" else None
    made = make_vec_env(name, count, seed=seed, wrapper_class=wrapper)
    return VecNormalize(made) if normalised else made


def statistics(model):
    """What observations are normalised by, or None."""
    normalised = model.get_vec_normalize_env()
    return None if normalised is None else normalised.obs_rms


def returns(model, options, episodes, seed, norm):
    made = environments(options, episodes, seed)
    if norm is not None:
        made.training, made.norm_reward, made.obs_rms = False, False, norm
    return evaluate_policy(model, made, episodes, deterministic=True, return_episode_rewards=True)[0]


class Best(BaseCallback):
    """Validates before the rollout that follows each sixteenth of the run, and keeps the best model."""

    def __init__(self, options, iteration, iterations):
        super().__init__()
        self.options, self.iteration, self.iterations = options, iteration, iterations
        self.done, self.found, self.started = 0, -np.inf, time.process_time()

    def validate(self):
        done = self.model.num_timesteps // self.iteration * VALIDATIONS // self.iterations
        if done == self.done:
            return
        self.done = done
        found = np.mean(returns(self.model, self.options, EPISODES, 1000, statistics(self.model)))
        if found > self.found:
            self.found = found
            self.kept = copy.deepcopy((self.model.policy.state_dict(), statistics(self.model)))
        print(f"{self.model.num_timesteps} transitions: return {found:.1f}, {self.seconds():.0f} CPU s", flush=True)

    def seconds(self):
        return time.process_time() - self.started

    def _on_rollout_start(self):
        self.validate()

    def _on_step(self):
        return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("deck", choices=RECIPES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--transitions", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    _, transitions, count, _, keys = RECIPES[options.deck]
    masked = options.deck == "cartpole_masked"
    model = (RecurrentPPO if masked else PPO)(
        "MlpLstmPolicy" if masked else "MlpPolicy", environments(options, count, options.seed),
        seed=options.seed, device="cpu", **keys)
    iteration = count * keys["n_steps"]
    iterations = -(-(options.transitions or transitions) // iteration)
    best = Best(options, iteration, iterations)
    model.learn(iterations * iteration, callback=best)
    best.validate()
    last = np.mean(returns(model, options, TEST_EPISODES, 2000, statistics(model)))
    model.policy.load_state_dict(best.kept[0])
    found = returns(model, options, TEST_EPISODES, 2000, best.kept[1])
    print(f"test: return {np.mean(found):.1f} (deviation {np.std(found):.1f}) with the best model, {last:.1f} with "
          f"the last; {iterations * iteration} transitions, {best.seconds():.0f} CPU s", flush=True)


if __name__ == "__main__":
    main()
