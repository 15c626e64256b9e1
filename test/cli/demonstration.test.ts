import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
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
  })
})
