// The time, for texts such as "3 min ago". It is updated once a second.

class Clock {
  now = $state(Date.now());

  constructor() {
    setInterval(() => {
      if (!document.hidden) this.now = Date.now();
    }, 1_000);
  }
}

export const clock = new Clock();
