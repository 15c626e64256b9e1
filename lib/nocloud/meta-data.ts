import type { Seed } from './seed.ts'
import { SeedError } from './seed-error.ts'
import { yamlText } from './yaml-text.ts'

/** The identity of the machine. */
export function metaData({ instanceId, hostname }: Seed): string {
  // cloud-init makes a directory of this name.
  if (!/^[A-Za-z0-9][A-Za-z0-9._:-]{0,199}$/.test(instanceId)) {
    throw new SeedError(
      'InvalidInstanceId',
      'instanceId',
      'at most 200 letters, digits, ".", "_", ":" and "-", a letter or digit first',
      instanceId,
    )
  }
  if (!isHostname(hostname)) {
    throw new SeedError(
      'InvalidHostname',
      'hostname',
      'labels of at most 63 letters, digits and inner hyphens, joined by dots, 253 characters in all',
      hostname,
    )
  }
  return yamlText({ 'instance-id': instanceId, 'local-hostname': hostname })
}

function isHostname(text: string): boolean {
  return (
    text.length <= 253 &&
    text.split('.').every((label) => /^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/.test(label))
  )
}
