import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readRun } from '../../local/run-file.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'egress-run-file-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('run file', () => {
  it.each(['', 'nothing', 'null', '[]', '{"pid":1}', '{"__proto__":{"pid":1}}'])(
    'that egress up did not write is told of, with what to do: %s',
    (text) => {
      writeFileSync(join(folder, 'run.json'), text)
      expect(() => readRun(folder)).toThrow(
        `${join(folder, 'run.json')} was not written by egress up: remove it, or name another folder`,
      )
    },
  )

  it('that is not there is no run', () => {
    expect(readRun(folder)).toBeUndefined()
  })
})
