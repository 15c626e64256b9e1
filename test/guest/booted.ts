import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { GuestSpec } from '../../sim/index.ts'
import { type GuestImage, guestImage } from '../../sim/qemu/image.ts'
import { type Machine, startMachine } from '../../sim/qemu/machine.ts'

/** Real machines of a test file, one disk each. */
export type Bench = {
  image: GuestImage
  /** A new disk that leans on a template. */
  disk(template: 'golden' | 'bare'): string
  /** Switches a machine on as the simulated cluster was to; what it prints is kept for a test that fails. */
  boot(spec: GuestSpec, disk: string, options?: { isolated?: boolean }): Promise<Machine>
  /** The consoles of all machines, for the message of a failure. */
  consoles(): string
  /** Ends all machines. */
  end(): Promise<void>
  close(): Promise<void>
}

export async function openBench(): Promise<Bench> {
  const image = await guestImage({ onLine: (line) => console.info(line) })
  const folder = mkdtempSync(join(tmpdir(), 'egress-guest-'))
  const machines: Machine[] = []
  let disks = 0
  const end = async () => {
    for (const machine of machines.splice(0)) await machine.close()
  }
  return {
    image,
    disk(template) {
      const path = join(folder, `disk-${++disks}.qcow2`)
      execFileSync('qemu-img', [
        'create',
        '-q',
        '-f',
        'qcow2',
        '-b',
        image[template],
        '-F',
        'qcow2',
        path,
        '4G',
      ])
      return path
    },
    async boot(spec, disk, { isolated = false } = {}) {
      const machine = await startMachine({
        image,
        disks: [disk],
        discs: spec.cdroms,
        mac: spec.mac,
        memoryMiB: spec.memoryMiB,
        cores: 1,
        isolated,
      })
      machines.push(machine)
      return machine
    },
    consoles: () =>
      machines.map((machine, index) => `--- console ${index + 1}\n${machine.console()}`).join('\n'),
    end,
    async close() {
      await end()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
