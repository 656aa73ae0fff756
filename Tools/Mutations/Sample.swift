/// Mutants sampled by a seed, distributed over files and kinds.
public enum Sample {
    /// - Returns: up to `count` mutants, in proportion to their number in each file, and of as many kinds as possible.
    ///
    /// A change of the sources changes the sample mostly where mutants were added or removed.
    public static func draw(_ count: Int, from mutants: [Mutant], seed: UInt64) -> [Mutant] {
        guard count > 0, !mutants.isEmpty else { return [] }
        let files = Dictionary(grouping: mutants, by: \.file).sorted { rank($0.key, seed) < rank($1.key, seed) }
        // Points at equal distances along all mutants, file after file: each file gets those within it.
        let offset = Double(rank("offset", seed) % 1_000) / 1_000
        let distance = Double(mutants.count) / Double(count)
        var drawn: [Mutant] = []
        var end = 0
        for (file, candidates) in files {
            end += candidates.count
            let points = min(count, Int((Double(end) / distance - offset).rounded(.up)))
            drawn += kinds(of: candidates, seed).prefix(max(0, points - drawn.count))
            // One expression can be rewritten in only one way.
            var places: Set<Range<Int>> = []
            drawn.removeAll { $0.file == file && !places.insert($0.range).inserted }
        }
        return drawn.sorted { $0.rank(seed: seed) < $1.rank(seed: seed) }
    }

    /// One of each kind first, then the second of each, in pseudo-random order.
    private static func kinds(of mutants: [Mutant], _ seed: UInt64) -> [Mutant] {
        Dictionary(grouping: mutants, by: \.kind).values
            .flatMap { alike in
                alike.sorted { $0.rank(seed: seed) < $1.rank(seed: seed) }.enumerated()
                    .map { (turn: $0.offset, rank: $0.element.rank(seed: seed), mutant: $0.element) }
            }
            .sorted { ($0.turn, $0.rank) < ($1.turn, $1.rank) }
            .map(\.mutant)
    }

    private static func rank(_ name: String, _ seed: UInt64) -> UInt64 {
        var hash = StableHash(seed: seed)
        hash.combine(name)
        return hash.value
    }
}
