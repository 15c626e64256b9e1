import { createHash } from 'node:crypto'
import { nodeOf, visibleFrom } from './cluster.ts'
import { type Ctx, maybeText, reply, text } from './endpoint.ts'
import { die, refuseParams } from './errors.ts'
import { end, next, type Program } from './program.ts'
import {
  activeStorage,
  addVolume,
  enabledStorage,
  findVolume,
  isFileBased,
  isShared,
  pathOf,
  removeVolume,
  spaceOf,
  storageConfig,
} from './storage.ts'

type UploadData = {
  storage: string
  target: string
  filename: string
  blob: string
  sizeBytes: number
  tmp: string
  checksum?: { algorithm: string; expected: string }
}

/** The file of the client as the receiving node has stored it; the worker copies it. Source: pve-storage API2/Storage/Status.pm upload. */
export function upload(ctx: Ctx) {
  const { cluster } = ctx
  const id = text(ctx, 'storage')
  const target = text(ctx, 'node') === 'localhost' ? ctx.node : text(ctx, 'node')
  const known = cluster.state.nodes.some((node) => node.name === target)
  const storage = enabledStorage(cluster, id, known ? target : ctx.node)
  if (!isFileBased(storage)) die(`can't upload to storage type '${storage.type}'`)
  const kind = text(ctx, 'content')
  const filename = normalName(text(ctx, 'filename'))
  if (!extensions[kind]?.test(filename)) refuseParams({ filename: 'wrong file extension' })
  if (!storage.content.includes(kind)) die(`storage '${id}' does not support '${kind}' content`)
  if (target !== ctx.node && !isShared(storage)) reachOver(ctx, id, target)
  activeStorage(cluster, id, target)
  const { upload: file } = ctx.call
  if (!file) die('upload without a file')

  const tmp = Array.from({ length: 32 }, () => Math.floor(cluster.random() * 16).toString(16)).join('')
  const blob = `${tmp}-${filename.slice(-40)}`
  cluster.blobs.put(blob, file.bytes)
  const algorithm = maybeText(ctx, 'checksum-algorithm')
  const data: UploadData = {
    storage: id,
    target,
    filename,
    blob,
    sizeBytes: file.bytes.length,
    tmp: `/var/tmp/pveupload-${tmp}`,
    ...(algorithm === undefined ? {} : { checksum: { algorithm, expected: text(ctx, 'checksum') } }),
  }
  return reply(cluster.tasks.fork(ctx.node, 'imgcopy', '', ctx.caller, data))
}

/** A name is more than its ending. */
const extensions: Record<string, RegExp> = {
  iso: /[^/]\.(?:iso|img)$/i,
  vztmpl: /[^/]\.tar\.(?:gz|xz|zst|bz2)$/i,
  import: /[^/]\.(?:ova|qcow2|raw|vmdk)$/,
}

/** The receiving node asks the other one by ssh whether the storage is there. */
function reachOver(ctx: Ctx, id: string, target: string): void {
  const node = nodeOf(ctx.cluster, target)
  if (visibleFrom(ctx.cluster, ctx.node).includes(node)) return
  const command = `/usr/bin/ssh -o 'BatchMode=yes' -o 'HostKeyAlias=${target}' ${node.ip} -- /usr/sbin/pvesm status --storage ${id}`
  die(`can't activate storage '${id}' on node '${target}': command '${command}' failed: exit code 255\n`)
}

function normalName(given: string): string {
  return given.replace(/^.*[/\\]/s, '').replace(/[^a-zA-Z0-9_.-]/gu, '_')
}

export const uploadProgram: Program<UploadData> = {
  stages: {
    begin(run) {
      const { cluster, data } = run
      run.log(`starting file import from: ${data.tmp}`)
      if (data.checksum) {
        const got = createHash(data.checksum.algorithm).update(cluster.blobs.get(data.blob)).digest('hex')
        const { expected } = data.checksum
        if (got !== expected.toLowerCase()) {
          run.log('calculating checksum...')
          die(`checksum mismatch: got '${got}' != expect '${expected}'`)
        }
        run.log('calculating checksum...OK, checksum verified')
      }
      return next('copied', cluster.durations.uploadMs)
    },
    copied(run) {
      const { cluster, data } = run
      const storage = storageConfig(cluster, data.storage)
      const path = pathOf(storage, `iso/${data.filename}`)
      run.log(`target node: ${data.target}`)
      run.log(`target file: ${path}`)
      run.log(`file size is: ${data.sizeBytes}`)
      run.log(`command: ${copyCommand(run.node, data, nodeOf(cluster, data.target).ip)} ${path}`)
      if (storage.readOnly)
        die(`import failed: cp: cannot create regular file '${path}': Read-only file system`)
      const old = findVolume(cluster, data.target, { storage: data.storage, name: `iso/${data.filename}` })
      if (spaceOf(cluster, data.target, storage).avail + (old?.usedBytes ?? 0) < data.sizeBytes)
        die(`import failed: cp: error writing '${path}': No space left on device`)
      if (old) removeVolume(cluster, old)
      addVolume(cluster, data.target, storage, {
        name: `iso/${data.filename}`,
        sizeBytes: data.sizeBytes,
        blob: data.blob,
      })
      run.log('finished file import successfully')
      return end
    },
  },
  failed(run, text) {
    run.cluster.blobs.remove(run.data.blob)
    return text
  },
}

function copyCommand(node: string, data: UploadData, ip: string): string {
  if (node === data.target) return `cp -- ${data.tmp}`
  return `/usr/bin/scp -o BatchMode=yes -o HostKeyAlias=${data.target} -- ${data.tmp} ${ip}:`
}
