/// The web pages of other origins that may read responses over HTTP (Cross-Origin Resource Sharing, Fetch §3.2): calls, streams and
/// routes. Set `AccessPolicy.cors`:
///
///     access.cors = CORSPolicy(origins: ["https://app.example"])
///
/// It says nothing about WebSockets and pages, which `AccessPolicy.origins` permits. The server answers preflight requests itself,
/// without authentication. The names of methods and fields are checked when the server starts, which throws `addressInvalid`.
public struct CORSPolicy: Sendable {
    /// The origins, exact, as `https://app.example` or `http://localhost:3000`; `*` is an error. Nil, the default, stands for those of
    /// `AccessPolicy.origins`, which must then be a list.
    public var origins: Set<String>?
    /// The methods that pages may use. Default: `GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE`.
    public var methods: Set<String> = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
    /// The request fields that pages may set. Default: those that the server reads.
    public var headers: Set<String> = [
        "Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "Trebuchet-Timeout", "traceparent",
    ]
    /// The response fields that pages may read, besides those that all pages may. Default: `Retry-After`.
    public var exposedHeaders: Set<String> = ["Retry-After"]
    /// True if browsers send cookies and certificates of the user with requests of these pages. Default false. With true, each page of
    /// these origins acts as the user.
    public var allowsCredentials = false
    /// The time for which a browser may keep the answer to a preflight request, in whole seconds. Default 10 minutes.
    public var maximumAge = Duration.seconds(600)

    /// Creates a policy.
    ///
    /// - Parameter origins: The exact origins; nil for those of `AccessPolicy.origins`.
    public init(origins: Set<String>? = nil) { self.origins = origins }
}
