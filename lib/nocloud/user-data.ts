import { cloudConfigFault } from './cloud-config-fault.ts'
import type { Seed } from './seed.ts'
import { SeedError } from './seed-error.ts'
import { cloudConfig } from './yaml-text.ts'

/** The limit of EC2, which images and their tools are made for. */
export const userDataMaxBytes = 16 * 1024

/**
 * The publisher's user-data to the letter, or an empty cloud-config (a seed without the file is no seed).
 *
 * What cloud-init would silently ignore is refused here, while somebody still listens. Nothing of the text
 * reaches the error.
 */
export function userData({ userData: text }: Seed): string {
  if (text === undefined) return cloudConfig({})
  const bytes = Buffer.byteLength(text)
  if (bytes > userDataMaxBytes) {
    throw new SeedError('UserDataTooLarge', 'userData', `at most ${userDataMaxBytes} bytes`, `${bytes} bytes`)
  }
  if (!text.isWellFormed() || text.includes('\0')) throw invalid('Unicode text without NUL characters')
  const format = formats.find(({ start }) => start.test(text))
  if (!format) throw invalid(`a text that starts with ${formats.map(({ name }) => name).join(', ')}`)
  const fault = format.name === '#cloud-config' ? cloudConfigFault(text) : undefined
  if (fault) throw invalid(fault)
  return text
}

/** Source: cloud-init documentation, "User-data formats"; it skips leading white space and ignores case. */
const formats = [
  { name: '#cloud-config', start: /^\s*#cloud-config\s/i },
  { name: '#cloud-config-archive', start: /^\s*#cloud-config-archive\s/i },
  { name: '#!', start: /^\s*#!/ },
  { name: '#cloud-boothook', start: /^\s*#cloud-boothook\s/i },
  { name: '#include', start: /^\s*#include(-once)?\s/i },
  { name: '## template: jinja', start: /^\s*## template:\s*jinja\s/i },
  { name: 'a MIME multipart header', start: /^(MIME-Version:|Content-Type:\s*multipart\/)/i },
]

function invalid(wanted: string): SeedError {
  return new SeedError('InvalidUserData', 'userData', wanted)
}
