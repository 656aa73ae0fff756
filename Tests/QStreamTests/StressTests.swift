@testable import QStream
import Testing

@Suite(.timeLimit(.minutes(1))) struct StressTests {
    /// The values that one reader saw of each writer.
    private final class Reader: Sendable {
        let seen = Log<(writer: Int, number: Int)>()

        var isInOrder: Bool {
            var last: [Int: Int] = [:]
            for (writer, number) in seen.values {
                if let before = last[writer], before >= number { return false }
                last[writer] = number
            }
            return true
        }
    }

    @Test("eight writers, fifty readers that come and go, waiting and cancelled: each in order, nothing left behind")
    func stress() async {
        let subject = Subject(value: (writer: 0, number: 0))
        let merged = await subject.merge(await subject.dispatch())
        await withTaskGroup(of: Void.self) { group in
            for writer in 1...8 {
                group.addTask {
                    for number in 1...300 { await subject.set((writer: writer, number: number)) }
                }
            }
            for index in 0..<50 {
                group.addTask {
                    for round in 0..<6 {
                        let reader = Reader()
                        let chain = await subject.map { $0 }.filter { _ in true }
                        let subscription = await chain.tap { reader.seen.note($0) }
                        let waiting = Task { await merged.waitFor { $0.number == 299 + index % 3 } }
                        for _ in 0..<(index + round) % 7 { await Task.yield() }
                        if round.isMultiple(of: 2) { subscription.cancel() }
                        waiting.cancel()
                        _ = await waiting.value
                        #expect(reader.isInOrder)
                    }
                }
            }
        }
        #expect(subject.outlet.inletCount == 2)
        #expect(merged.outlet.inletCount == 0)
    }
}
