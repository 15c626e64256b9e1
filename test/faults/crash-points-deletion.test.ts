import { eachDeath } from './crash.ts'
import { plots } from './plots.ts'

// A deletion that comes at each step of a creation. In a file of its own, so that the two run side by side.
eachDeath(plots.filter(({ name }) => name.startsWith('delete-at-')))
