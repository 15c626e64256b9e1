import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { lockFolder } from '../../local/lock.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'egress-lock-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const script = `
  const { lockFolder } = await import(${JSON.stringify(new URL('../../local/lock.ts', import.meta.url).href)})
  lockFolder(process.argv[1])
  console.log('locked')
  setInterval(() => undefined, 1000)
`

describe('lock', () => {
  it('keeps a second process out, naming the first, and is gone with it however it ended', async () => {
    const holder = spawn(process.execPath, ['--input-type=module', '-e', script, folder], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    if (!holder.stdout) throw new Error('no output')
    await once(createInterface(holder.stdout), 'line')
    expect(() => lockFolder(folder)).toThrow(
      expect.objectContaining({
        name: 'FolderInUse',
        pid: holder.pid,
        message: expect.stringContaining(`in use by process ${holder.pid}`),
      }),
    )
    holder.kill('SIGKILL')
    await once(holder, 'exit')
    lockFolder(folder).close()
  })

  it('can be taken again once it is closed', () => {
    lockFolder(folder).close()
    lockFolder(folder).close()
  })
})
