import type { Api } from './api.ts'
import { isProxmoxError } from './errors.ts'
import type { Expiry, Provider } from './provider.ts'

type Inspection = Pick<Provider, 'expiryOf' | 'hasPool' | 'clockOf' | 'bridgesOf' | 'certificatesOf'>

/** What the life of a VM does without, and a check of the cluster asks for. */
export function createInspection(api: Api): Inspection {
  return {
    expiryOf: async (tokenId) => {
      const [userid, name] = tokenId.split('!')
      const user = (await api.users()).find((one) => one.userid === userid)
      const token = user?.tokens.find(({ tokenid }) => tokenid === name)
      return user && token ? readExpiry(token.expire, user.expire) : undefined
    },

    hasPool: async (pool) => {
      try {
        await api.pool({ poolid: pool })
        return true
      } catch (error) {
        // Who may see it is told by the handler, who may not by the check before it.
        if (isProxmoxError(error, 'Rejected')) return false
        if (isProxmoxError(error, 'Forbidden') && error.path !== undefined && !error.privilege) return false
        throw error
      }
    },

    clockOf: async (node) => (await api.time({ node })).time * 1000,

    bridgesOf: async (node) =>
      (await api.bridges({ node })).map(({ iface, type, active }) => ({
        name: iface,
        vnet: type === 'vnet',
        active,
      })),

    certificatesOf: async (node) =>
      (await api.certificates({ node })).map(({ filename = '', fingerprint, notafter }) => ({
        file: filename,
        ...(fingerprint === undefined ? {} : { fingerprint }),
        ...(notafter === undefined ? {} : { expiresAtMs: notafter * 1000 }),
      })),
  }
}

/** Proxmox writes 0 for never. */
function readExpiry(token = 0, user = 0): Expiry {
  return {
    ...(token > 0 ? { tokenAtMs: token * 1000 } : {}),
    ...(user > 0 ? { userAtMs: user * 1000 } : {}),
  }
}
