import { execFile } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Template } from './template.ts'

const project = new URL('../..', import.meta.url).pathname
const osls = createRequire(import.meta.url).resolve('osls/bin/serverless.js')

export type Packaged = {
  /** What CloudFormation is given. */
  template: Template
  /** The zip that Lambda is given. */
  zip(functionName: string): Buffer
  remove(): void
}

/**
 * `npm run package` for a stage, offline and without credentials. It happens in a folder of its own, so that nothing of it
 * meets another test run, and so that a test can have a stage that the project does not.
 */
export async function packageStage(
  stage: string,
  files: { config?: string; stage?: string } = {},
): Promise<Packaged> {
  const folder = mkdtempSync(join(tmpdir(), 'egress-package-'))
  const link = (name: string) => symlinkSync(join(project, name), join(folder, name))
  for (const name of ['node_modules', 'package.json']) link(name)
  // Copied, since the bundler names what it finds by where it really is.
  for (const name of ['serverless.yml', 'functions', 'lib', 'infra', 'config'])
    cpSync(join(project, name), join(folder, name), { recursive: true })
  if (files.config !== undefined) writeFileSync(join(folder, `config/${stage}.yml`), files.config)
  if (files.stage !== undefined) writeFileSync(join(folder, `infra/stages/${stage}.yml`), files.stage)
  const target = join(folder, 'out')
  mkdirSync(target)
  const { PATH = '', HOME = folder } = process.env
  await promisify(execFile)(process.execPath, [osls, 'package', '--stage', stage, '--package', target], {
    cwd: folder,
    env: { PATH, HOME, SLS_INTERACTIVE_SETUP_ENABLE: '0', SLS_NOTIFICATIONS_MODE: 'off' },
  }).catch((error: Error & { stdout?: string; stderr?: string }) => {
    rmSync(folder, { recursive: true })
    throw new Error(`packaging failed:\n${error.stdout}\n${error.stderr}`)
  })
  if (readdirSync(target).length === 0) throw new Error('nothing was packaged')
  return {
    template: JSON.parse(readFileSync(join(target, 'cloudformation-template-update-stack.json'), 'utf8')),
    zip: (name) => readFileSync(join(target, `${name}.zip`)),
    remove: () => rmSync(folder, { recursive: true }),
  }
}
