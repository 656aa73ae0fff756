import Bytes
import Testing
import TrebuchetWire

struct AdvertisedLimitsTests {
    private func terms(_ text: String) throws -> AdvertisedLimits {
        try Array(text.utf8).withUnsafeBytes { try ValueCoder().decode(AdvertisedLimits.self, from: $0) }
    }

    @Test("a hello is decoded as it was encoded")
    func roundTrip() throws {
        let written = AdvertisedLimits(
            callsPerConnection: 7, callBytesPerConnection: 70_000, streamsPerConnection: 3, messageSize: 900,
            clientActorsPerClient: 0, clientAnswerSize: 500)
        for ping in [nil, 20_000] {
            var buffer = ByteBuffer()
            EnvelopeWriter.hello(session: "a.b.c", terms: written, pingIntervalMilliseconds: ping, into: &buffer)
            let message = Array(buffer.bytes)
            try message.withUnsafeBytes { bytes in
                var envelope = ScannedEnvelope()
                try envelope.scan(bytes)
                #expect(envelope.kind == .hello)
                #expect(envelope.string(envelope.session, in: bytes) == "a.b.c")
                let read = try ValueCoder().decode(
                    AdvertisedLimits.self, from: envelope.limits.bytes(in: bytes))
                #expect(read == written)
            }
        }
    }

    @Test("an omitted limit is unlimited, and any advertised value permits one call at a time")
    func odd() throws {
        #expect(try terms("{}").callsPerConnection == .max)
        let text = #"{"callsPerConnection":-9223372036854775808,"messageSize":0,"streamsPerConnection":null,"new":[1]}"#
        let odd = try terms(text)
        #expect(odd.callsPerConnection == 1)
        #expect(odd.messageSize == 1)
        #expect(odd.streamsPerConnection == .max)
        #expect(odd.clientActorsPerClient == 0, "an older server accepts no references to client actors")
        #expect(throws: (any Error).self) { try terms(#"{"callsPerConnection":"many"}"#) }
    }
}
