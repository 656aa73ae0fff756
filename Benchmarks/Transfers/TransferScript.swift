import Glibc
import Platform

/// Calls of `bank.transfer(from:to:amount:)` between accounts by chance, 1 at a time, and what came of them.
///
/// `@unchecked Sendable`: handed to a load before it runs, touched by that on its reactor alone, and read when it has ended.
final class TransferScript: RequestScript, @unchecked Sendable {
    private let accounts: Int
    private var random: RandomSource
    /// What each message begins with, which stays.
    private let heads: [[UInt8]]
    private static let tail = Array(",1]}}".utf8)
    /// Answered with false: the amount was not there.
    private(set) var refused = 0
    /// Answered with an error.
    private(set) var failed = 0

    init(accounts: Int, inFlight: Int, seed: UInt64) {
        self.accounts = accounts
        random = RandomSource(seed: seed)
        heads = (0..<inFlight).map { slot in
            // Calls that are not answered yet have names of their own.
            let whole = Invocation.text("bank", "transfer(from:to:amount:)", ["?"], id: "c\(slot)")
            return Array(whole.prefix { $0 != "?" }.utf8)
        }
    }

    /// The messages before their first use, one for each that is in flight.
    var messages: [[UInt8]] { heads }

    func write(_ message: inout [UInt8], slot: Int) {
        message.removeLast(message.count - heads[slot].count)
        message.append(contentsOf: String(Int.random(in: 0..<accounts, using: &random)).utf8)
        message.append(UInt8(ascii: ","))
        message.append(contentsOf: String(Int.random(in: 0..<accounts, using: &random)).utf8)
        message.append(contentsOf: Self.tail)
    }

    func read(_ answer: UnsafeRawBufferPointer) {
        // The result stands at the end.
        if Self.ends(answer, ":true}}") { return }
        if Self.ends(answer, ":false}}") { refused += 1 } else { failed += 1 }
    }

    private static func ends(_ message: UnsafeRawBufferPointer, _ text: StaticString) -> Bool {
        let length = text.utf8CodeUnitCount
        guard let start = message.baseAddress, message.count >= length else { return false }
        return memcmp(start + message.count - length, text.utf8Start, length) == 0
    }
}
