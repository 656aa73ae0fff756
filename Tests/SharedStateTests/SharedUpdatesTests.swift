import Testing

@testable import SharedState

struct SharedUpdatesTests {
    @Test(
        "the newest version stays, whatever order versions come in",
        arguments: [[1, 2, 3], [3, 1, 2], [2, 3, 1], [3, 3, 3]])
    func order(numbers: [UInt64]) {
        var newest = SharedUpdates.Version(value: "0", number: 0)
        var replaced: [String] = []
        for number in numbers {
            if let old = newest.advance(to: SharedUpdates.Version(value: "\(number)", number: number)) {
                replaced.append(old.value)
            }
        }
        #expect(newest.value == "3")
        #expect(replaced == replaced.sorted())
        #expect(!replaced.contains("3"))
    }
}
