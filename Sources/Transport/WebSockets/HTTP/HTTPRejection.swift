package import Transports

/// The rejection of a request: the response status, and a reason for the developer of the peer.
package struct HTTPRejection: Error, Equatable, Sendable {
    package let status: Int
    package let reason: String
    /// Fields that the status requires, such as `Allow` with 405.
    package var headers: HTTPHeaders

    package init(_ status: Int, _ reason: String, headers: HTTPHeaders = [:]) {
        self.status = status
        self.reason = reason
        self.headers = headers
    }

    /// The response: the reason as a line of text; the connection ends after it.
    package var response: HTTPResponse {
        var response = HTTPResponse(status: status, text: reason)
        for field in headers.fields { response.headers.add(field.name, field.value) }
        return response
    }
}
