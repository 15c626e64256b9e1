import { defineConfig } from 'vitest/config'

/** Real machines, emulated by QEMU: a stage of its own, since each boot takes a minute of a processor. */
export default defineConfig({
  test: {
    include: ['test/guest/**/*.guest.ts'],
    // Each test waits for a condition; this is only for one that never comes, on a machine that has more to do.
    testTimeout: 900_000,
    hookTimeout: 1_800_000,
    maxWorkers: 2,
    sequence: { concurrent: false },
  },
})
