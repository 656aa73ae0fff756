/// A source file with mutants compiled in, each behind a condition that selects the mutant of the process.
public struct Schemata: Sendable {
    public let text: String
    /// The lines of `text` with each numbered mutant, the innermost last.
    private let places: [(number: Int, lines: ClosedRange<Int>)]

    /// - Parameter slips: the mutants of this file, by number.
    public init(source: String, slips: [Int: Mutant]) {
        let bytes = Array(source.utf8)
        let sorted = slips.sorted { left, right in
            let (a, b) = (left.value.range, right.value.range)
            return (a.lowerBound, -a.count, left.key) < (b.lowerBound, -b.count, right.key)
        }
        var writer = Writer(bytes: bytes, slips: sorted.map { (number: $0.key, slip: $0.value) })
        writer.write(0..<bytes.count, from: 0)
        text = String(decoding: writer.output, as: UTF8.self)
        places = writer.places
    }

    /// The mutants that can cause a compiler error in this line: those around it, or else the nearest.
    public func suspects(line: Int) -> [Int] {
        let around = places.filter { $0.lines.contains(line) }
        if !around.isEmpty { return around.map(\.number) }
        return places.min { distance(line, $0.lines) < distance(line, $1.lines) }.map { [$0.number] } ?? []
    }

    private func distance(_ line: Int, _ lines: ClosedRange<Int>) -> Int {
        min(abs(line - lines.lowerBound), abs(line - lines.upperBound))
    }

    /// An additional file for each rewritten module.
    ///
    /// `TREBUCHET_SLIP` selects the mutant of a process. `TREBUCHET_SLIPS_REACHED` names a file in which the byte of each reached mutant
    /// becomes 1, also when the process is killed.
    public static let support = """
        internal import Glibc

        private let slipOfThisProcess = getenv("TREBUCHET_SLIP").map { Int(atol($0)) } ?? -1
        nonisolated(unsafe) private let slipsReached: (bytes: UnsafeMutablePointer<UInt8>, count: Int)? = {
            guard let path = getenv("TREBUCHET_SLIPS_REACHED") else { return nil }
            let file = open(path, O_RDWR | O_CLOEXEC)
            guard file >= 0 else { return nil }
            defer { close(file) }
            let count = Int(lseek(file, 0, SEEK_END))
            let memory = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
            guard count > 0, let memory, memory != MAP_FAILED else { return nil }
            return (memory.assumingMemoryBound(to: UInt8.self), count)
        }()

        @inline(never)
        func isSlipping(_ number: Int) -> Bool {
            if let slipsReached, number < slipsReached.count { slipsReached.bytes[number] = 1 }
            return number == slipOfThisProcess
        }

        """

    private struct Writer {
        let bytes: [UInt8]
        let slips: [(number: Int, slip: Mutant)]
        var output: [UInt8] = []
        var line = 1
        var places: [(number: Int, lines: ClosedRange<Int>)] = []

        /// Writes a part of the old source, with its mutants from `index` on.
        mutating func write(_ range: Range<Int>, from index: Int) {
            var position = range.lowerBound
            var index = index
            while index < slips.count {
                let place = slips[index].slip.range
                if place.lowerBound >= position, place.upperBound <= range.upperBound {
                    put(bytes[position..<place.lowerBound])
                    write(slips[index], index: index)
                    position = place.upperBound
                } else if place.lowerBound >= range.upperBound {
                    break
                }
                index += 1
            }
            put(bytes[position..<range.upperBound])
        }

        private mutating func write(_ numbered: (number: Int, slip: Mutant), index: Int) {
            let first = line
            for piece in numbered.slip.pieces {
                switch piece {
                case .text(let text):
                    let question = "isSlipping(\(numbered.number))"
                    put(
                        Array(
                            text.split(separator: Mutant.switchMark, omittingEmptySubsequences: false).joined(
                                separator: question
                            ).utf8)[...])
                case .source(let part): write(part, from: index + 1)
                }
            }
            places.append((numbered.number, first...line))
        }

        private mutating func put(_ part: ArraySlice<UInt8>) {
            output += part
            line += part.count { $0 == UInt8(ascii: "\n") }
        }
    }
}
