import { parseProperties } from './property-string.ts'
import { formats, type ParamSchema } from './schema.ts'

/** The text PVE gives when a value does not have the format, or undefined when it has. Source: pve-common JSONSchema.pm check_format. */
export function formatFault(format: NonNullable<ParamSchema['format']>, value: string): string | undefined {
  if (typeof format === 'object') return parseProperties(format.propertyString, value).fault
  if (format.endsWith('-list')) {
    for (const item of splitList(value)) {
      const fault = formatFault(format.slice(0, -'-list'.length), item)
      if (fault) return fault
    }
    return undefined
  }
  return (checks[format] ?? byPattern(format))(value)
}

/** PVE's split_list: commas, semicolons and white space, or NUL when there is one. */
export function splitList(text: string): string[] {
  const parts = text.includes('\0') ? text.split('\0') : text.split(/[,;\s]/)
  return parts.filter((part) => part !== '')
}

type Check = (value: string) => string | undefined

function byPattern(format: string): Check {
  const { regex, flags, error } = formats[format] ?? {}
  return (value) => {
    if (!regex || new RegExp(regex, flags).test(value)) return undefined
    return (error ?? `value does not look like a valid ${format}`).replace('<id>', value)
  }
}

const bootOrder = /^(?:order=.*|[acdn]{1,4}|legacy=[acdn]{1,4})$/

const checks: Record<string, Check> = {
  urlencoded: (value) =>
    /^[-%a-zA-Z0-9_.!~*'()]*$/.test(value) ? undefined : `invalid urlencoded string: ${value}`,
  'pve-qm-boot': (value) => (bootOrder.test(value) ? undefined : 'invalid boot order'),
  'pve-volume-id': (value) =>
    /^[a-zA-Z][a-zA-Z0-9\-_.]*[a-zA-Z0-9]:.+$/.test(value)
      ? undefined
      : `unable to parse volume ID '${value}'\n`.trimEnd(),
  'pve-volume-id-or-qm-path': (value) =>
    value === 'none' || value === 'cdrom' || /^\//.test(value) || /^[^/\s]+:.+$/.test(value)
      ? undefined
      : `unable to parse volume ID '${value}'`,
  'pve-volume-id-or-absolute-path': (value) =>
    value.startsWith('/') ? undefined : checks['pve-volume-id']?.(value),
  'disk-size': (value) =>
    /^\d+(\.\d+)?[KMGT]?$/.test(value) ? undefined : `value does not look like a valid disk size: ${value}`,
  'pve-bridge-id': (value) => (/^[-_.\w\d]+$/.test(value) ? undefined : 'invalid bridge ID'),
  'pve-task-status-type': (value) =>
    /^(?:ok|error|warning|unknown)$/.test(value) ? undefined : `invalid status '${value}'`,
  'pve-storage-content': () => undefined,
  'pve-hotplug-features': () => undefined,
}
