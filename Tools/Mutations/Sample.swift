/// Slips drawn by a seed, spread over files and kinds.
public enum Sample {
    /// - Returns: up to `count` slips, the more from a file the more it has, of as many kinds as there are.
    ///
    /// A change of the sources changes the draw only where slips came or went, more or less.
    public static func draw(_ count: Int, from slips: [Mutant], seed: UInt64) -> [Mutant] {
        guard count > 0, !slips.isEmpty else { return [] }
        let files = Dictionary(grouping: slips, by: \.file).sorted { rank($0.key, seed) < rank($1.key, seed) }
        // Points at even distances along all slips, file after file: each file gets those that fall into it.
        let offset = Double(rank("offset", seed) % 1_000) / 1_000
        let distance = Double(slips.count) / Double(count)
        var drawn: [Mutant] = []
        var end = 0
        for (file, candidates) in files {
            end += candidates.count
            let points = min(count, Int((Double(end) / distance - offset).rounded(.up)))
            drawn += kinds(of: candidates, seed).prefix(max(0, points - drawn.count))
            // One expression can be rewritten in one way only.
            var places: Set<Range<Int>> = []
            drawn.removeAll { $0.file == file && !places.insert($0.range).inserted }
        }
        return drawn.sorted { $0.rank(seed: seed) < $1.rank(seed: seed) }
    }

    /// One of each kind first, then the second of each, in an order of chance.
    private static func kinds(of slips: [Mutant], _ seed: UInt64) -> [Mutant] {
        Dictionary(grouping: slips, by: \.kind).values
            .flatMap { alike in
                alike.sorted { $0.rank(seed: seed) < $1.rank(seed: seed) }.enumerated()
                    .map { (turn: $0.offset, rank: $0.element.rank(seed: seed), slip: $0.element) }
            }
            .sorted { ($0.turn, $0.rank) < ($1.turn, $1.rank) }
            .map(\.slip)
    }

    private static func rank(_ name: String, _ seed: UInt64) -> UInt64 {
        var hash = StableHash(seed: seed)
        hash.combine(name)
        return hash.value
    }
}
