import Platform

/// Random choices, reproducible by seed.
struct Dice {
    private var random: RandomSource

    init(seed: UInt64) { random = RandomSource(seed: seed) }

    /// For the group `number` of a run with `seed`.
    init(seed: UInt64, group number: Int) {
        var mixer = RandomSource(seed: seed ^ UInt64(number) &* 0xD134_2543_DE82_EF95)
        random = RandomSource(seed: mixer.next())
    }

    mutating func int(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
    mutating func chance(_ percent: Int) -> Bool { int(1...100) <= percent }
    mutating func pick<Element>(_ all: [Element]) -> Element { all[int(0...all.count - 1)] }

    /// A number near a boundary: powers of two and of ten, limits of the protocol; up to `largest`.
    mutating func edge(upTo largest: Int) -> Int {
        let all = [
            0, 1, 2, 10, 32, 64, 125, 126, 127, 128, 255, 256, 1_000, 1_024, 4_096, 8_192, 10_000, 16_384, 32_768,
            65_535, 65_536,
            100_000, 131_072, 262_144, 524_288, 1_000_000, 1_048_576, 2_097_152,
        ].filter { $0 <= largest }
        let value = pick(all) + (chance(50) ? int(-3...3) : chance(30) ? -int(0...200) : 0)
        return min(max(0, value), largest)
    }

    /// A number between small and large, with equally likely orders of magnitude.
    mutating func size(upTo largest: Int) -> Int {
        var limit = 1
        let steps = int(0...20)
        for _ in 0..<steps where limit < largest { limit *= 2 }
        return int(0...min(limit, largest))
    }
}
