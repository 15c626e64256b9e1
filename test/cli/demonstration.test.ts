import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectNoTrace, secretOf } from '../hostile/canary.ts'
import { egress } from './egress.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'egress-demonstration-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

describe('demonstration', () => {
  it('shows a page fetched through a first proxy, takes it down and ends', { timeout: 240_000 }, async () => {
    const { code, out, err } = await egress(['up', '--once', '--data', folder])
    expect({ code, out }).toEqual({ code: 0, out: '' })
    expect(err).toMatch(/A page through http:\/\/127\.\d+\.\d+\.\d+:8080:\n {2}hello from egress/)
    expect(err).toContain('Nothing of it is left: no VM, no disk, no seed.')
    const token = readFileSync(join(folder, 'sim/token'), 'utf8').trim()
    const log = readFileSync(join(folder, 'up.log'), 'utf8')
    expect(log).toContain('"outcome"')
    expectNoTrace({ err, log, run: readFileSync(join(folder, 'config.yml'), 'utf8') }, [secretOf(token)])
  })
})
