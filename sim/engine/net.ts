/** A network option taken apart: model, MAC and the rest of its keys. */
export type Net = { model: string; macaddr?: string; options: Record<string, string> }

const models = new Set([
  'e1000',
  'e1000-82540em',
  'e1000-82544gc',
  'e1000-82545em',
  'e1000e',
  'i82551',
  'i82557b',
  'i82559er',
  'ne2k_isa',
  'ne2k_pci',
  'pcnet',
  'rtl8139',
  'virtio',
  'vmxnet3',
])

export function parseNet(text: string | number): Net {
  const net: Net = { model: '', options: {} }
  for (const part of String(text).split(',')) {
    const at = part.indexOf('=')
    const [key, value] = at < 0 ? ['model', part] : [part.slice(0, at), part.slice(at + 1)]
    if (key === 'model') net.model = value
    else if (key === 'macaddr') net.macaddr = value
    else if (models.has(key)) Object.assign(net, { model: key, macaddr: value })
    else net.options[key] = value
  }
  return net
}

export function printNet(net: Net, newMac: () => string): string {
  const mac = (net.macaddr ?? newMac()).toUpperCase()
  const rest = Object.entries(net.options).sort(([a], [b]) => (a < b ? -1 : 1))
  return [`${net.model}=${mac}`, ...rest.map(([key, value]) => `${key}=${value}`)].join(',')
}

/** Under Proxmox's own prefix, as the default `mac_prefix` of 8 and 9 has it. */
export function randomMac(random: () => number): string {
  const octet = () =>
    Math.floor(random() * 256)
      .toString(16)
      .toUpperCase()
      .padStart(2, '0')
  return `BC:24:11:${octet()}:${octet()}:${octet()}`
}

export function randomUuid(random: () => number): string {
  const hex = Array.from({ length: 32 }, () => Math.floor(random() * 16).toString(16))
  hex[12] = '4'
  hex[16] = '89ab'[Math.floor(random() * 4)] ?? '8'
  const text = hex.join('')
  return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20)].join(
    '-',
  )
}
