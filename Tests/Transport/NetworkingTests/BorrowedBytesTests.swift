import Bytes
import Glibc
import Testing

@testable import Networking
import Transports

@Suite("Borrowed input bytes in output", .timeLimit(.minutes(5)), .serialized, .dedicatedReactor)
struct BorrowedBytesTests {
    private static let lent = ByteChannel.smallestLent
    /// Input without two equal pieces.
    private let input = (0..<40_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }

    /// Writes borrowed pieces of the input between other bytes, and returns the expected output.
    private func answer(
        _ rig: ChannelRig, _ pieces: [Range<Int>], _ then: @escaping @Sendable (ByteChannel) -> Void = { _ in }
    )
        async -> [UInt8]
    {
        let input = input
        await rig.on {
            rig.ears.onBytes = { channel, bytes in
                for (number, piece) in pieces.enumerated() {
                    channel.write { $0.append(UInt8(number)) }
                    channel.write(read: UnsafeRawBufferPointer(rebasing: bytes[piece]))
                }
                channel.write { $0.append([1, 2, 3]) }
                then(channel)
            }
        }
        return pieces.enumerated().flatMap { [UInt8($0)] + input[$1] } + [1, 2, 3]
    }

    /// All bytes at the peer until the channel has no more.
    private func drain(_ rig: ChannelRig) async -> [UInt8] {
        var all: [UInt8] = []
        repeat {
            all += await rig.on { rig.take() ?? [] }
        } while await rig.on({ rig.channel.pendingBytes > 0 }) && !Task.isCancelled
        return all + (await rig.on { rig.take() ?? [] })
    }

    /// Overwrites the input buffer.
    private func overwrite(_ rig: ChannelRig) async {
        await rig.on { _ = memset(rig.reactor.readBuffer.baseAddress!, 0xEE, rig.reactor.readBuffer.count) }
    }

    @Test("borrowed bytes keep their order among written bytes")
    func order() async throws {
        let rig = try await ChannelRig()
        let lent = Self.lent
        let expected = await answer(rig, [0..<lent, 5..<10, 100..<(lent + 100), 0..<lent, 0..<40_000, 7..<7]) {
            channel in
            // Counted as pending before the turn ends.
            #expect(channel.pendingBytes == 3 * lent + 40_000 + 5 + 6 + 3)
        }
        rig.send(input)
        await rig.settle()
        #expect(await drain(rig) == expected)
        #expect(await rig.on { rig.reactor.borrowed.pointee.isEmpty && rig.channel.pendingBytes == 0 })
    }

    @Test("bytes that the socket does not accept are copied, however much it accepts")
    func rest() async throws {
        for room in [0, 1, 5_000, 20_000, 60_000, 150_000] {
            let rig = try await ChannelRig()
            await rig.on { rig.fill() }
            var filled = room == 0 ? [] : await rig.on { rig.take(room) ?? [] }
            let expected = await answer(rig, [0..<20_000, 1_000..<40_000, 0..<40_000, 3..<39_000])
            rig.send(input)
            await rig.settle()
            await overwrite(rig)
            filled += await drain(rig)
            #expect(Array(filled.drop { $0 == 9 }) == Array(expected.drop { $0 == 9 }), "\(room)")
        }
    }

    @Test("many borrowed pieces are sent before the turn ends")
    func many() async throws {
        let rig = try await ChannelRig()
        let expected = await answer(rig, (0..<150).map { ($0 * 3)..<($0 * 3 + Self.lent) })
        rig.send(input)
        await rig.settle()
        await overwrite(rig)
        #expect(await drain(rig) == expected)
    }

    @Test("borrowed bytes are sent before an orderly end, and dropped by a reset")
    func endings() async throws {
        let rig = try await ChannelRig()
        let expected = await answer(rig, [0..<30_000]) { $0.closeAfterFlush() }
        rig.send(input)
        await rig.settle()
        #expect(await drain(rig) == expected)
        let other = try await ChannelRig()
        _ = await answer(other, [0..<30_000]) { $0.close() }
        other.send(input)
        await other.settle()
        #expect(await other.on { other.take() } == nil)
        #expect(await other.on { other.reactor.borrowed.pointee.isEmpty && other.reactor.output.pointee.isEmpty })
    }

    @Test("shared bytes after borrowed ones keep their order, also behind queued output")
    func shared() async throws {
        let rig = try await ChannelRig()
        let lent = Self.lent
        let expected = await answer(rig, [0..<lent, 0..<(2 * lent)]) { channel in
            channel.write(shared: ChannelRig.shared(20_000))
            channel.write { $0.append([8]) }
        }
        rig.send(input)
        await rig.settle()
        #expect(await drain(rig) == expected + [UInt8](repeating: 5, count: 20_000) + [8])
    }

    @Test("bytes outside of the input buffer are copied at once")
    func elsewhere() async throws {
        let rig = try await ChannelRig()
        let (channel, lent) = (rig.channel, Self.lent)
        await rig.on {
            channel.corked {
                var bytes = [UInt8](repeating: 4, count: lent)
                bytes.withUnsafeBytes { channel.write(read: $0) }
                bytes = [UInt8](repeating: 6, count: lent)
                bytes.withUnsafeBytes { channel.write(read: $0) }
            }
        }
        #expect(await drain(rig) == [UInt8](repeating: 4, count: lent) + [UInt8](repeating: 6, count: lent))
    }
}
