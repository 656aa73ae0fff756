/// A source file with mutants compiled in, each behind a condition that selects the mutant of the process.
public struct Schemata: Sendable {
    public let text: String
    /// The lines of `text` with each numbered mutant, the innermost last.
    private let ranges: [(number: Int, lines: ClosedRange<Int>)]

    /// - Parameter mutants: the mutants of this file, by number.
    public init(source: String, mutants: [Int: Mutant]) {
        let bytes = Array(source.utf8)
        let sorted = mutants.sorted { left, right in
            let (a, b) = (left.value.range, right.value.range)
            return (a.lowerBound, -a.count, left.key) < (b.lowerBound, -b.count, right.key)
        }
        var writer = Writer(bytes: bytes, mutants: sorted.map { (number: $0.key, mutant: $0.value) })
        writer.write(0..<bytes.count, from: 0)
        text = String(decoding: writer.output, as: UTF8.self)
        ranges = writer.ranges
    }

    /// The mutants that can cause a compiler error in this line: those around it, or else the nearest.
    public func suspects(line: Int) -> [Int] {
        let around = ranges.filter { $0.lines.contains(line) }
        if !around.isEmpty { return around.map(\.number) }
        return ranges.min { distance(line, $0.lines) < distance(line, $1.lines) }.map { [$0.number] } ?? []
    }

    private func distance(_ line: Int, _ lines: ClosedRange<Int>) -> Int {
        min(abs(line - lines.lowerBound), abs(line - lines.upperBound))
    }

    /// An additional file for each rewritten module.
    ///
    /// `TREBUCHET_MUTANT` selects the mutant of a process. `TREBUCHET_MUTANTS_REACHED` names a file in which the byte of each reached mutant
    /// becomes 1, also when the process is killed.
    public static let support = """
        internal import Glibc

        private let activeMutant = getenv("TREBUCHET_MUTANT").map { Int(atol($0)) } ?? -1
        nonisolated(unsafe) private let reachedMutants: (bytes: UnsafeMutablePointer<UInt8>, count: Int)? = {
            guard let path = getenv("TREBUCHET_MUTANTS_REACHED") else { return nil }
            let file = open(path, O_RDWR | O_CLOEXEC)
            guard file >= 0 else { return nil }
            defer { close(file) }
            let count = Int(lseek(file, 0, SEEK_END))
            let memory = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
            guard count > 0, let memory, memory != MAP_FAILED else { return nil }
            return (memory.assumingMemoryBound(to: UInt8.self), count)
        }()

        @inline(never)
        func isMutantActive(_ number: Int) -> Bool {
            if let reachedMutants, number < reachedMutants.count { reachedMutants.bytes[number] = 1 }
            return number == activeMutant
        }

        """

    private struct Writer {
        let bytes: [UInt8]
        let mutants: [(number: Int, mutant: Mutant)]
        var output: [UInt8] = []
        var line = 1
        var ranges: [(number: Int, lines: ClosedRange<Int>)] = []

        /// Writes a part of the old source, with its mutants from `index` on.
        mutating func write(_ range: Range<Int>, from index: Int) {
            var position = range.lowerBound
            var index = index
            while index < mutants.count {
                let own = mutants[index].mutant.range
                if own.lowerBound >= position, own.upperBound <= range.upperBound {
                    put(bytes[position..<own.lowerBound])
                    write(mutants[index], index: index)
                    position = own.upperBound
                } else if own.lowerBound >= range.upperBound {
                    break
                }
                index += 1
            }
            put(bytes[position..<range.upperBound])
        }

        private mutating func write(_ numbered: (number: Int, mutant: Mutant), index: Int) {
            let first = line
            for piece in numbered.mutant.pieces {
                switch piece {
                case .text(let text):
                    let question = "isMutantActive(\(numbered.number))"
                    put(
                        Array(
                            text.split(separator: Mutant.switchMark, omittingEmptySubsequences: false).joined(
                                separator: question
                            ).utf8)[...])
                case .source(let part): write(part, from: index + 1)
                }
            }
            ranges.append((numbered.number, first...line))
        }

        private mutating func put(_ part: ArraySlice<UInt8>) {
            output += part
            line += part.count { $0 == UInt8(ascii: "\n") }
        }
    }
}
