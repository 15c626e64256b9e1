import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openLogFile } from '../../local/log-file.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'egress-log-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('log-file', () => {
  it('appends to what an earlier start wrote, for its owner alone to read', () => {
    const path = join(folder, 'up.log')
    for (const text of ['one', 'two']) {
      const log = openLogFile(path)
      log.line(text)
      log.close()
    }
    expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n')
    expect(statSync(path).mode & 0o077).toBe(0)
  })

  it('keeps one old file and one new one, however much is written', () => {
    const path = join(folder, 'up.log')
    const log = openLogFile(path, 1000)
    for (let index = 0; index < 200; index += 1) log.note({ index, text: 'x'.repeat(80) })
    log.close()
    const files = [`${path}.1`, path].map((file) => readFileSync(file, 'utf8'))
    for (const text of files) expect(text.length).toBeLessThan(1200)
    const last = JSON.parse(files.join('').trim().split('\n').at(-1) ?? '')
    expect(last.index).toBe(199)
  })
})
