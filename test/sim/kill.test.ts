import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { createSim, createVirtualClock, defaultWorld } from '../../sim/index.ts'

it('ends a clone that a killed process had begun', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'sim-kill-'))
  const secret = 'a-secret-of-the-test'
  const child = spawn(process.execPath, [
    fileURLToPath(new URL('./kill-child.ts', import.meta.url)),
    stateDir,
    secret,
  ])
  const [line] = await once(child.stdout, 'data')
  child.kill('SIGKILL')
  await once(child, 'exit')

  const clock = createVirtualClock(Date.now())
  const sim = createSim({ world: defaultWorld({ secret }), stateDir, clock })
  const { data: upid } = JSON.parse(String(line))
  expect(sim.tasks()).toMatchObject([{ upid, status: 'running' }])
  expect(sim.vms().find((vm) => vm.vmid === 101)?.lock).toBe('clone')
  await clock.runUntilIdle()
  expect(sim.tasks()).toMatchObject([{ upid, exitstatus: 'OK' }])
  expect(sim.vms().find((vm) => vm.vmid === 101)).toMatchObject({ name: 'survivor', pool: 'egress' })
  await sim.close()
  rmSync(stateDir, { recursive: true })
})
