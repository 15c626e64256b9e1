import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Disks } from '../types.ts'

/** Disks as qcow2 files of a folder. */
export type Qcow2Disks = Disks & { pathOf(disk: string): string }

/** Disks that all lean on one image, as the templates of the simulated cluster do. */
export function qcow2Disks(folder: string, template: string): Qcow2Disks {
  mkdirSync(folder, { recursive: true })
  const pathOf = (disk: string) => join(folder, `${encodeURIComponent(disk)}.qcow2`)
  const overlay = (path: string, of: string) =>
    run('create', '-q', '-f', 'qcow2', '-F', 'qcow2', '-b', of, path)
  return {
    pathOf,
    begin: (disk) => overlay(pathOf(disk), template),
    clone(disk, of, how) {
      if (how === 'linked') overlay(pathOf(disk), pathOf(of))
      else run('convert', '-q', '-f', 'qcow2', '-O', 'qcow2', pathOf(of), pathOf(disk))
    },
    resize: (disk, bytes) => run('resize', '-q', '-f', 'qcow2', pathOf(disk), String(bytes)),
    remove: (disk) => rmSync(pathOf(disk), { force: true }),
  }
}

/** @throws {Error} with what qemu-img said */
function run(...args: string[]): void {
  execFileSync('qemu-img', args, { stdio: ['ignore', 'ignore', 'pipe'] })
}
