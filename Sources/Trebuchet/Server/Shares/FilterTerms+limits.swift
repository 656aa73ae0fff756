internal import TrebuchetActors

extension FilterTerms {
    init(_ limits: ServerLimits, _ parties: Parties) {
        self.init()
        most = limits.filtersPerState
        byteLimit = limits.filterBytesPerState
        bringers = parties.all
    }
}
