import Bytes
import Glibc
@testable import Networking
import Testing

@Suite struct WriteQueueTests {
    /// A socket that accepts the given number of bytes at each call, or fails, in this order; then it accepts nothing.
    private struct WriteQueueReader {
        var answers: [Int]
        var got: [UInt8] = []
        /// The number of pieces of each call.
        var pieces: [Int] = []

        init(_ answers: [Int]) { self.answers = answers }

        mutating func take(_ pieces: UnsafeMutableBufferPointer<iovec>) -> Int {
            self.pieces.append(pieces.count)
            guard !answers.isEmpty else { return -Int(EAGAIN) }
            let most = answers.removeFirst()
            guard most > 0 else { return most }
            let all = pieces.flatMap { UnsafeRawBufferPointer(start: $0.iov_base, count: $0.iov_len).map(\.self) }
            got += all.prefix(most)
            return min(most, all.count)
        }
    }

    private static func append(_ bytes: [UInt8], to queue: inout WriteQueue) {
        bytes.withUnsafeBytes { queue.append($0) }
    }

    private static func shared(_ bytes: [UInt8]) -> SharedBytes { bytes.withUnsafeBytes { SharedBytes($0) } }

    @Test("a queue counts pending and shared bytes, however they are sent", arguments: [1, 2, 3, 4, 5, 7, 11, 100])
    func counts(step: Int) {
        var queue = WriteQueue()
        #expect(queue.isEmpty)
        var all: [UInt8] = []
        // Each kind twice in succession, and pieces of one byte.
        for (number, (size, isShared)) in [(3, false), (2, false), (4, true), (1, true), (5, false), (1, true)]
            .enumerated()
        {
            let bytes = (0..<size).map { UInt8(number * 16 + $0) }
            all += bytes
            if isShared { queue.append(Self.shared(bytes)) } else { Self.append(bytes, to: &queue) }
        }
        #expect([queue.count, queue.sharedCount, queue.ownCount] == [16, 6, 10])
        // 5 own, 4 shared, 1 shared, 5 own, 1 shared: a shared piece counts until its last byte is sent.
        let sharedLeft = [6, 6, 6, 6, 6, 6, 6, 6, 6, 2, 1, 1, 1, 1, 1, 1, 0]
        var taker = WriteQueueReader([])
        while !queue.isEmpty {
            taker.answers = [step]
            #expect(queue.flush { taker.take($0) } == 0)
            #expect(queue.count == 16 - taker.got.count)
            #expect(queue.sharedCount == sharedLeft[taker.got.count])
            #expect(queue.ownCount == max(0, queue.count - queue.sharedCount))
        }
        #expect(taker.got == all)
        // Again from an empty queue.
        Self.append([9], to: &queue)
        #expect(queue.count == 1)
        taker = WriteQueueReader([1])
        #expect(queue.flush { taker.take($0) } == 0)
        #expect(taker.got == [9])
    }

    @Test("a queue offers up to 32 pieces at once, and stops only when the socket accepts no more")
    func pieces() {
        var queue = WriteQueue()
        for number in 0..<70 { queue.append(Self.shared([UInt8(number)])) }
        var taker = WriteQueueReader([32, 32, 6])
        #expect(queue.flush { taker.take($0) } == 0)
        #expect(taker.pieces == [32, 32, 6])
        #expect(taker.got == Array(0..<70))
    }

    @Test("an empty queue makes one call without pieces")
    func nothing() {
        var queue = WriteQueue()
        queue.append(Self.shared([]))
        #expect(queue.pieceCount == 0)
        Self.append([], to: &queue)
        var taker = WriteQueueReader([])
        #expect(queue.flush { taker.take($0) } == 0)
        #expect(taker.pieces == [])
        // Bytes after the empty piece are sent.
        Self.append([1], to: &queue)
        taker = WriteQueueReader([1])
        #expect(queue.flush { taker.take($0) } == 0)
        #expect(taker.got == [1])
    }

    @Test("an interrupted call is repeated, a full socket is no error, all other errors are")
    func errors() {
        for (answers, error, calls) in [
            ([-Int(EINTR), -Int(EINTR), 4], 0, 3), ([-Int(EAGAIN)], 0, 1), ([2, -Int(EAGAIN)], 0, 2),
            ([-Int(EPIPE)], EPIPE, 1), ([1, -Int(ECONNRESET)], ECONNRESET, 2),
        ] as [([Int], Int32, Int)] {
            var queue = WriteQueue()
            Self.append([1, 2, 3, 4], to: &queue)
            var taker = WriteQueueReader(answers)
            #expect(queue.flush { taker.take($0) } == error)
            #expect(taker.pieces.count == calls)
            #expect(queue.count == 4 - taker.got.count)
        }
    }

    @Test("unshared bytes are gathered in one piece of up to 64 KiB", arguments: [(64 << 10, 2), ((64 << 10) - 1, 1)])
    func gathered(first: Int, pieces: Int) {
        var queue = WriteQueue()
        Self.append([UInt8](repeating: 1, count: first), to: &queue)
        Self.append([2], to: &queue)
        var taker = WriteQueueReader([first + 1])
        #expect(queue.flush { taker.take($0) } == 0)
        #expect(taker.pieces == [pieces])
        #expect(taker.got.count == first + 1)
        #expect(taker.got.last == 2)
    }

    @Test("a partially sent piece may grow")
    func grows() {
        var queue = WriteQueue()
        Self.append([1, 2, 3], to: &queue)
        var taker = WriteQueueReader([2])
        #expect(queue.flush { taker.take($0) } == 0)
        Self.append([4, 5], to: &queue)
        #expect(queue.count == 3)
        taker.answers = [3]
        #expect(queue.flush { taker.take($0) } == 0)
        #expect(taker.got == [1, 2, 3, 4, 5])
        // One piece, removed with its last byte.
        #expect(taker.pieces == [1, 1, 1])
    }

    @Test("shared bytes are released when their last byte is sent")
    func released() {
        var queue = WriteQueue()
        weak var retained: SharedBytes?
        do {
            let shared = Self.shared([1, 2, 3])
            retained = shared
            queue.append(shared)
        }
        Self.append([4], to: &queue)
        var taker = WriteQueueReader([2])
        _ = queue.flush { taker.take($0) }
        #expect(retained != nil)
        taker.answers = [1]
        _ = queue.flush { taker.take($0) }
        #expect(retained == nil)
        #expect(queue.count == 1)
    }
}
