import { isMap, type Yaml, type YamlMap } from './merge.ts'

/** The guest's card after its network came up. */
export type Card = { name: string /** It got an IPv4 address. */; isUp: boolean }

const defaultName = 'eth0'

/**
 * What a network-config makes of the card with that MAC. Without one the first card asks DHCP. A card that no entry matches
 * stays down. Source: cloud-init documentation, network config versions 1 and 2.
 */
export function configureCard(mac: string, config: Yaml | undefined, log: (line: string) => void): Card {
  if (config === undefined) return { name: defaultName, isUp: true }
  const network = isMap(config) && isMap(config.network) ? config.network : config
  if (!isMap(network) || (network.version !== 1 && network.version !== 2)) {
    log('cloud-init: network-config without a known version, the card stays down')
    return { name: defaultName, isUp: false }
  }
  const card = network.version === 2 ? fromVersion2(mac, network) : fromVersion1(mac, network)
  if (!card) log(`cloud-init: network-config has nothing for the card ${mac.toLowerCase()}`)
  else if (!card.isUp) log(`cloud-init: network-config gives ${card.name} no address`)
  return card ?? { name: defaultName, isUp: false }
}

function fromVersion2(mac: string, { ethernets }: YamlMap): Card | undefined {
  for (const [id, entry] of Object.entries(isMap(ethernets) ? ethernets : {})) {
    if (!isMap(entry)) continue
    const match = isMap(entry.match) ? entry.match : undefined
    const isOurs = match ? matches(mac, match) : id === defaultName
    if (!isOurs) continue
    const name = typeof entry['set-name'] === 'string' ? entry['set-name'] : defaultName
    const hasStatic =
      Array.isArray(entry.addresses) && entry.addresses.some((address) => String(address).includes('.'))
    return { name, isUp: entry.dhcp4 === true || hasStatic }
  }
  return undefined
}

function matches(mac: string, { macaddress, name }: YamlMap): boolean {
  if (macaddress !== undefined && String(macaddress).toLowerCase() !== mac.toLowerCase()) return false
  if (name === undefined) return macaddress !== undefined
  const glob = String(name)
    .replace(/[.+^${}()|\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.')
  return new RegExp(`^${glob}$`).test(defaultName)
}

function fromVersion1(mac: string, { config }: YamlMap): Card | undefined {
  for (const entry of Array.isArray(config) ? config : []) {
    if (!isMap(entry) || entry.type !== 'physical') continue
    const hasMac = entry.mac_address !== undefined
    const isOurs = hasMac
      ? String(entry.mac_address).toLowerCase() === mac.toLowerCase()
      : entry.name === defaultName
    if (!isOurs) continue
    const subnets = (Array.isArray(entry.subnets) ? entry.subnets : []).filter(isMap)
    const isUp = subnets.some(
      ({ type, address }) =>
        /^dhcp4?$/.test(String(type)) || (type === 'static' && String(address).includes('.')),
    )
    return { name: String(entry.name ?? defaultName), isUp }
  }
  return undefined
}
