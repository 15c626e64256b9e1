import { eachDeath } from './crash.ts'
import { plots } from './plots.ts'

eachDeath(plots.filter(({ name }) => !name.startsWith('delete-at-')))
