/// The negotiated parameters of permessage-deflate (RFC 7692 §7.1).
package struct NegotiatedCompression: Equatable, Sendable {
    package var serverNoContextTakeover = false
    package var clientNoContextTakeover = false
    /// The window size as a power of two; nil if it was not negotiated, which means 15.
    package var serverMaxWindowBits: Int?
    package var clientMaxWindowBits: Int?

    package init() {}

    static let name = "permessage-deflate"

    /// The parameters as an element of `Sec-WebSocket-Extensions`.
    var description: String {
        var text = Self.name
        if serverNoContextTakeover { text += "; server_no_context_takeover" }
        if clientNoContextTakeover { text += "; client_no_context_takeover" }
        if let serverMaxWindowBits { text += "; server_max_window_bits=\(serverMaxWindowBits)" }
        if let clientMaxWindowBits { text += "; client_max_window_bits=\(clientMaxWindowBits)" }
        return text
    }

    // MARK: Server

    /// Returns the response to the first acceptable offer of a client, or nil without one.
    static func answer(_ offers: [WebSocketExtension], _ settings: WebSocketCompression) -> NegotiatedCompression? {
        for offer in offers where offer.name == name {
            guard let parameters = Parameters(offer, isOffer: true) else { continue }
            // zlib cannot compress with a window of 256 bytes.
            if let bits = parameters.serverMaxWindowBits, bits < 9 { continue }
            var agreement = NegotiatedCompression()
            agreement.serverNoContextTakeover =
                parameters.serverNoContextTakeover || settings.serverNoContextTakeover
            agreement.clientNoContextTakeover =
                parameters.clientNoContextTakeover || settings.clientNoContextTakeover
            if let bits = parameters.serverMaxWindowBits {
                agreement.serverMaxWindowBits = min(bits, settings.serverMaxWindowBits)
            } else if settings.serverMaxWindowBits < 15 {
                agreement.serverMaxWindowBits = settings.serverMaxWindowBits
            }
            if parameters.offersClientMaxWindowBits {
                let bits = min(parameters.clientMaxWindowBits ?? 15, settings.clientMaxWindowBits)
                if bits < 15 { agreement.clientMaxWindowBits = bits }
            }
            return agreement
        }
        return nil
    }

    // MARK: Client

    /// Returns the offer of a client.
    static func offer(_ settings: WebSocketCompression) -> String {
        var offer = NegotiatedCompression()
        offer.serverNoContextTakeover = settings.serverNoContextTakeover
        offer.clientNoContextTakeover = settings.clientNoContextTakeover
        if settings.serverMaxWindowBits < 15 { offer.serverMaxWindowBits = settings.serverMaxWindowBits }
        if settings.clientMaxWindowBits < 15 { offer.clientMaxWindowBits = settings.clientMaxWindowBits }
        return offer.description + (offer.clientMaxWindowBits == nil ? "; client_max_window_bits" : "")
    }

    /// Validates a server's response to `offer(settings)`; nil if it is not allowed.
    init?(answer: WebSocketExtension, to settings: WebSocketCompression) {
        guard answer.name == Self.name, let parameters = Parameters(answer, isOffer: false) else { return nil }
        if settings.serverNoContextTakeover, !parameters.serverNoContextTakeover { return nil }
        if settings.serverMaxWindowBits < 15 {
            guard let bits = parameters.serverMaxWindowBits, bits <= settings.serverMaxWindowBits else { return nil }
        }
        serverNoContextTakeover = parameters.serverNoContextTakeover
        // A client may always omit context takeover, whatever the server responds.
        clientNoContextTakeover = parameters.clientNoContextTakeover || settings.clientNoContextTakeover
        serverMaxWindowBits = parameters.serverMaxWindowBits
        clientMaxWindowBits = min(parameters.clientMaxWindowBits ?? 15, settings.clientMaxWindowBits)
    }

    /// The parameters of an offer or a response, each at most once and with a valid value.
    private struct Parameters {
        var serverNoContextTakeover = false
        var clientNoContextTakeover = false
        var serverMaxWindowBits: Int?
        var clientMaxWindowBits: Int?
        var offersClientMaxWindowBits = false

        init?(_ element: WebSocketExtension, isOffer: Bool) {
            var seen: Set<String> = []
            for parameter in element.parameters {
                guard seen.insert(parameter.name).inserted else { return nil }
                switch (parameter.name, parameter.value) {
                case ("server_no_context_takeover", nil): serverNoContextTakeover = true
                case ("client_no_context_takeover", nil): clientNoContextTakeover = true
                case ("server_max_window_bits", let value?):
                    guard let bits = Self.bits(value) else { return nil }
                    serverMaxWindowBits = bits
                case ("client_max_window_bits", let value?):
                    guard let bits = Self.bits(value) else { return nil }
                    clientMaxWindowBits = bits
                    offersClientMaxWindowBits = true
                case ("client_max_window_bits", nil) where isOffer: offersClientMaxWindowBits = true
                default: return nil
                }
            }
        }

        /// Parses window bits: 8 to 15, without leading zeros (RFC 7692 §7.1.2).
        private static func bits(_ text: String) -> Int? {
            guard let bits = Int(text), 8...15 ~= bits, text == String(bits) else { return nil }
            return bits
        }
    }
}
