import { problem } from './answer.ts'
import type { Api } from './api.ts'
import { calls } from './calls.ts'
import type { Provider, Volume } from './provider.ts'

type Volumes = Pick<Provider, 'volumesOf' | 'disks' | 'isos' | 'storages' | 'upload' | 'deleteVolume'>

/** Storages and what lies on them. */
export function createVolumes(api: Api): Volumes {
  return {
    // `images` alone: backups carry the VMID too, and are nobody's left-overs.
    volumesOf: async ({ node, storage, vmid }) =>
      (await api.volumes({ node, storage }, { vmid, content: 'images' })).map(readVolume),

    disks: async ({ node, storage }) =>
      (await api.volumes({ node, storage }, { content: 'images' })).map(readVolume),

    isos: async ({ node, storage }) => (await api.isos({ node, storage })).map(readVolume),

    storages: async (node) =>
      (await api.storages({ node })).map(({ total = 0, avail = 0, ...storage }) => ({
        ...storage,
        totalBytes: total,
        availableBytes: avail,
      })),

    upload: async ({ node, storage, filename, bytes, secrets = [] }) => {
      // Proxmox would store another name than this one, and we would never find the file again.
      if (!/^[A-Za-z0-9_.-]{1,251}\.iso$/.test(filename)) {
        const subject = { spec: calls.upload, path: { node, storage } }
        const detail = { filename: 'wanted: letters, digits, `_`, `.`, `-`, at most 255, ending in .iso' }
        throw problem(
          subject,
          { code: 'Rejected', sent: 'no', detail },
          `file name ${filename} is not its own`,
        )
      }
      return api.upload({ node, storage }, { name: filename, bytes }, secrets)
    },

    deleteVolume: ({ node, storage, volume }) => api.deleteVolume({ node, storage, volume }),
  }
}

function readVolume(volume: Awaited<ReturnType<Api['volumes']>>[number]): Volume {
  const { volid, content = '', format = '', size = 0, vmid } = volume
  return { volid, content, format, sizeBytes: size, ...(vmid === undefined ? {} : { vmid }) }
}
