import Glibc
import Platform

/// Calls of `bank.transfer(from:to:amount:)` with amount 1 between random accounts, and their results.
///
/// `@unchecked Sendable`: passed to a load before it runs, used on the load's reactor only, and read after its end.
final class TransferScript: RequestScript, @unchecked Sendable {
    private let accounts: Int
    private var random: RandomSource
    /// The constant beginning of each slot's message.
    private let heads: [[UInt8]]
    private static let tail = Array(",1]}}".utf8)
    /// The number of calls answered with false: the balance was too low.
    private(set) var refused = 0
    /// The number of calls answered with an error.
    private(set) var failed = 0

    init(accounts: Int, inFlight: Int, seed: UInt64) {
        self.accounts = accounts
        random = RandomSource(seed: seed)
        heads = (0..<inFlight).map { slot in
            // In-flight calls need different callIDs.
            let whole = Invocation.text("bank", "transfer(from:to:amount:)", ["?"], id: "c\(slot)")
            return Array(whole.prefix { $0 != "?" }.utf8)
        }
    }

    /// The initial messages, one for each in-flight slot.
    var messages: [[UInt8]] { heads }

    func write(_ message: inout [UInt8], connection: Int, slot: Int) {
        message.removeLast(message.count - heads[slot].count)
        message.append(contentsOf: String(Int.random(in: 0..<accounts, using: &random)).utf8)
        message.append(UInt8(ascii: ","))
        message.append(contentsOf: String(Int.random(in: 0..<accounts, using: &random)).utf8)
        message.append(contentsOf: Self.tail)
    }

    func read(_ answer: UnsafeRawBufferPointer) {
        // The result is at the end.
        if Self.ends(answer, ":true}}") { return }
        if Self.ends(answer, ":false}}") { refused += 1 } else { failed += 1 }
    }

    private static func ends(_ message: UnsafeRawBufferPointer, _ text: StaticString) -> Bool {
        let length = text.utf8CodeUnitCount
        guard let start = message.baseAddress, message.count >= length else { return false }
        return memcmp(start + message.count - length, text.utf8Start, length) == 0
    }
}
