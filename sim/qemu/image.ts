import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What a machine boots from, as paths. `golden` has guest agent and proxy program, `bare` neither. */
export type GuestImage = {
  golden: string
  bare: string
  kernel: string
  initrd: string
  /** The packages that `golden` has and `bare` has not. */
  mirror: string
}

/** There is no image, and why none can be built here; what to do stands in the message. */
export class NoGuestImage extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'NoGuestImage'
  }
}

const recipe = fileURLToPath(new URL('build-image.sh', import.meta.url))

/** Programs by the Debian package that brings them. */
const toRun = { 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils', setpriv: 'util-linux' }
const toBuild = { mmdebstrap: 'mmdebstrap', mke2fs: 'e2fsprogs', flock: 'util-linux', unshare: 'util-linux' }

/** Where the image of the present recipe is, or will be: a change of the recipe makes another. */
export function imageFolder(env: NodeJS.ProcessEnv = process.env): string {
  const cache = env.XDG_CACHE_HOME || join(homedir(), '.cache')
  const hash = createHash('sha256').update(readFileSync(recipe)).digest('hex').slice(0, 12)
  return join(cache, 'egress-proxies', 'guest', hash)
}

export const isImageBuilt = (): boolean => existsSync(imageFolder())

/**
 * The image, built when it is not there yet: minutes, and 800 MB in the user's cache folder. It appears whole or not at all,
 * whatever is killed meanwhile, and of two who want it one builds and the other waits. @throws {NoGuestImage}
 */
export async function guestImage({ onLine }: { onLine?: (line: string) => void } = {}): Promise<GuestImage> {
  demand(toRun)
  const folder = imageFolder()
  if (!existsSync(folder)) await build(folder, onLine ?? (() => {}))
  return {
    golden: join(folder, 'golden.qcow2'),
    bare: join(folder, 'bare.qcow2'),
    kernel: join(folder, 'vmlinuz'),
    initrd: join(folder, 'initrd.img'),
    mirror: join(folder, 'mirror'),
  }
}

function demand(programs: Record<string, string>): void {
  const missing = Object.entries(programs).filter(([program]) => !isInstalled(program))
  if (missing.length === 0) return
  const packages = [...new Set(missing.map(([, name]) => name))].join(' ')
  throw new NoGuestImage(
    `${missing.map(([program]) => program).join(', ')} not installed: apt-get install --no-install-recommends ${packages}`,
  )
}

/** Debian's tools for file systems are not on every user's PATH. */
function isInstalled(program: string): boolean {
  return [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/sbin'].some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** Under the lock: nothing to do, or away with what another left half and build anew. `$0` is the recipe, `$1` the folder. */
const underLock =
  'test -e "$1" || { rm -rf --one-file-system "$1.part" && mkdir "$1.part" && sh "$0" "$1.part" && mv "$1.part" "$1"; }'

async function build(folder: string, onLine: (line: string) => void): Promise<void> {
  demand(toBuild)
  if (process.getuid?.() !== 0) {
    throw new NoGuestImage(
      'building the image of the guests takes root once; after that, any user can boot them',
    )
  }
  mkdirSync(dirname(folder), { recursive: true })
  onLine(`building the guests' image in ${folder}, once: minutes`)
  // In name spaces of their own the mounts and processes of a build that is killed go with it.
  const apart = ['unshare', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child=KILL']
  const inTurn = ['flock', join(dirname(folder), 'lock'), 'sh', '-c', underLock, recipe, folder]
  const said: string[] = []
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...apart, ...inTurn], {
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      for (const line of text.split('\n').filter((one) => one.trim() !== '')) {
        said.push(line)
        if (said.length > 40) said.shift()
      }
    })
  }
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
  if (code !== 0) throw new NoGuestImage(`the image of the guests could not be built:\n${said.join('\n')}`)
}
