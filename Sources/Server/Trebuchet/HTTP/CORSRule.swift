internal import Bytes
internal import Transports
internal import WebSockets

/// Decides which pages of other origins may read responses over HTTP. Pure.
struct CORSRule: Sendable {
    private static let originField = "Origin"
    private static let requestedMethod = "Access-Control-Request-Method"

    private let origins: Set<WebOrigin>
    private let allowsCredentials: Bool
    private let methods: String
    private let headers: String
    private let exposedHeaders: String
    private let maximumAge: Int

    /// Checks the policy of a server.
    ///
    /// - Parameter shared: The value of `AccessPolicy.origins`.
    init(_ policy: CORSPolicy, origins shared: Set<String>?) throws(TransportError) {
        guard let listed = policy.origins ?? shared else {
            throw TransportError(
                .addressInvalid, "AccessPolicy.cors has no origins, and AccessPolicy.origins is nil; list them")
        }
        guard !listed.contains("*") else {
            throw TransportError(.addressInvalid, "AccessPolicy.cors requires exact origins, without *")
        }
        origins = try WebOrigin.list(
            listed, setting: policy.origins == nil ? "AccessPolicy.origins" : "AccessPolicy.cors")
        for name in policy.methods.union(policy.headers).union(policy.exposedHeaders) where !HTTPHeaders.isName(name) {
            throw TransportError(
                .addressInvalid, "'\(name.prefix(bytes: 64))' in AccessPolicy.cors is not a method or a field name")
        }
        allowsCredentials = policy.allowsCredentials
        methods = policy.methods.sorted().joined(separator: ", ")
        headers = policy.headers.sorted().joined(separator: ", ")
        exposedHeaders = policy.exposedHeaders.sorted().joined(separator: ", ")
        maximumAge = Int(max(0, policy.maximumAge.components.seconds))
    }

    /// Returns whether the page of a request may read the response.
    func permits(_ request: HTTPRequestHead) -> Bool { origin(of: request) != nil }

    /// Returns the permitted origin of a request, as the browser has written it.
    private func origin(of request: HTTPRequestHead) -> String? {
        let values = request.headers.values(Self.originField)
        guard values.count == 1, let origin = WebOrigin(values[0]), origins.contains(origin) else { return nil }
        return values[0]
    }

    /// Returns the fields of a response.
    func fields(for request: HTTPRequestHead) -> HTTPHeaders {
        // A cache must not give the response to pages of another origin.
        var fields: HTTPHeaders = ["Vary": Self.originField]
        guard let origin = origin(of: request) else { return fields }
        add(origin, to: &fields)
        if !exposedHeaders.isEmpty { fields.add("Access-Control-Expose-Headers", exposedHeaders) }
        return fields
    }

    private func add(_ origin: String, to fields: inout HTTPHeaders) {
        fields.add("Access-Control-Allow-Origin", origin)
        if allowsCredentials { fields.add("Access-Control-Allow-Credentials", "true") }
    }

    /// Returns the response to the preflight request of a permitted page; nil for another request.
    func preflight(_ request: HTTPRequestHead) -> HTTPResponse? {
        guard request.method == "OPTIONS", request.headers[Self.requestedMethod] != nil,
            let origin = origin(of: request)
        else { return nil }
        var fields: HTTPHeaders = ["Vary": "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"]
        add(origin, to: &fields)
        fields.add("Access-Control-Allow-Methods", methods)
        if !headers.isEmpty { fields.add("Access-Control-Allow-Headers", headers) }
        fields.add("Access-Control-Max-Age", "\(maximumAge)")
        return HTTPResponse(status: 204, headers: fields)
    }
}
