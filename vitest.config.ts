import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/seed.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Many files wait on sockets and on processes of their own; by itself vitest would use one worker on two cores.
    maxWorkers: 3,
  },
})
