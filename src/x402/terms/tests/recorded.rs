//! Headers that real clients made from our own 402 (the offer of `fixture`), recorded on a development machine with the
//! public test key of `fixture::buyer`: a digest that only we agree with would fail here.

use super::*;
use crate::evm::checksummed;
use serde_json::Map;

/// Time of the recording.
const RECORDED_AT_S: u64 = 1796082185;

/// @x402/fetch 2.27.0.
const V2: &str = concat!(
    "eyJ4NDAyVmVyc2lvbiI6MiwicGF5bG9hZCI6eyJhdXRob3JpemF0aW9uIjp7ImZyb20iOiIweDcwOTk3OTcwQzUxODEyZGMzQTAx",
    "MEM3ZDAxYjUwZTBkMTdkYzc5QzgiLCJ0byI6IjB4M0M0NENkRGRCNmE5MDBmYTJiNTg1ZGQyOTllMDNkMTJGQTQyOTNCQyIsInZh",
    "bHVlIjoiNTAwMDAiLCJ2YWxpZEFmdGVyIjoiMCIsInZhbGlkQmVmb3JlIjoiMTc5NjA4MjQyMyIsIm5vbmNlIjoiMHgxMDhhYzBh",
    "MWFkYzEzY2Q0MTM3NjY5Y2MwYmU0YzljYmI2NmVkYzU4YjQ4ZWY3NzMxNTc0YjliNWI5OTIyMTk2In0sInNpZ25hdHVyZSI6IjB4",
    "OWE0OWUzYzIyYWNhMDU5NmNlOGVhMWMxYTM5NWY5YjQyNDI4MzIxZjNmYzI5MTlhYjZlOWFiY2UwMWUyYjUyZDI1Zjk4ZjcyOTEz",
    "ZGQwMTI3ZDVhNWU2Yzg3NjczMzFhZDQ3ZGEyODM5MjhiMTkxZGM3MmI4MTMzMzZmNmY3ZDYxYiJ9LCJleHRlbnNpb25zIjp7InJl",
    "ZnVzYWwtY29udHJhY3QiOnsiaW5mbyI6eyJjb250cmFjdF9pZCI6ImFiIiwidXJsIjoiaHR0cDovLzEyNy4wLjAuMS94In0sInNj",
    "aGVtYSI6eyJ0eXBlIjoib2JqZWN0In19fSwicmVzb3VyY2UiOnsiZGVzY3JpcHRpb24iOiJBIGNpdGVkIG1lbW8iLCJtaW1lVHlw",
    "ZSI6ImFwcGxpY2F0aW9uL2pzb24iLCJzZXJ2aWNlTmFtZSI6ImppbSIsInRhZ3MiOlsicmVzZWFyY2giXSwidXJsIjoiaHR0cDov",
    "LzEyNy4wLjAuMTo0MDIxL3Jlc2VhcmNoL2Z1bmRhbWVudGFscyJ9LCJhY2NlcHRlZCI6eyJhbW91bnQiOiI1MDAwMCIsImFzc2V0",
    "IjoiMHgwMzZDYkQ1Mzg0MmM1NDI2NjM0ZTc5Mjk1NDFlQzIzMThmM2RDRjdlIiwiZXh0cmEiOnsibmFtZSI6IlVTREMiLCJ2ZXJz",
    "aW9uIjoiMiJ9LCJtYXhUaW1lb3V0U2Vjb25kcyI6MjQwLCJuZXR3b3JrIjoiZWlwMTU1Ojg0NTMyIiwicGF5VG8iOiIweDNDNDRD",
    "ZERkQjZhOTAwZmEyYjU4NWRkMjk5ZTAzZDEyRkE0MjkzQkMiLCJzY2hlbWUiOiJleGFjdCJ9fQ==",
);

/// x402-fetch 1.2.0.
const V1: &str = concat!(
    "eyJ4NDAyVmVyc2lvbiI6MSwic2NoZW1lIjoiZXhhY3QiLCJuZXR3b3JrIjoiYmFzZS1zZXBvbGlhIiwicGF5bG9hZCI6eyJzaWdu",
    "YXR1cmUiOiIweGViZDI1NDc4ZjI5YjI1M2Q0YjFhNzg1NTJkODYxMjAzYzEzOWM5ZmUxM2FlN2UyY2JjNDgwZWYyMDZhYzg2ODEz",
    "OTVkZTdjMTc5ZWU5YmY3NmJlZGYzNmIyYjFmZTU0M2FkMTg2YTFhZjhlYTIxNDA0N2VlODFmOGM5NWY4YTc3MWMiLCJhdXRob3Jp",
    "emF0aW9uIjp7ImZyb20iOiIweDcwOTk3OTcwQzUxODEyZGMzQTAxMEM3ZDAxYjUwZTBkMTdkYzc5QzgiLCJ0byI6IjB4M0M0NENk",
    "RGRCNmE5MDBmYTJiNTg1ZGQyOTllMDNkMTJGQTQyOTNCQyIsInZhbHVlIjoiNTAwMDAiLCJ2YWxpZEFmdGVyIjoiMTc5NjA4MTU4",
    "NSIsInZhbGlkQmVmb3JlIjoiMTc5NjA4MjQyNSIsIm5vbmNlIjoiMHg1MDI4NjQ0OGJjMGVhYjFjN2Q4Y2RiNDQ4OTVlMmFiMTU5",
    "YWU3NjVmNjJhYjA0N2EyZDAwM2U2YzEzZTMxM2U1In19fQ==",
);

#[test]
fn what_real_clients_send_is_taken() {
    for (version, text) in [(Version::V2, V2), (Version::V1, V1)] {
        let payment = decode(version, text).expect("a payment");
        assert_eq!(match_offer(&payment, &offer()), Ok(()), "{version:?}");
        assert_eq!(verify_signature(&payment, &offer()), SignatureCheck::Eoa, "{version:?}");
        assert_eq!(check_window(&payment.authorization, RECORDED_AT_S, 115), Ok(()), "{version:?}");
        assert_eq!(payment.extensions().map(Map::len), (version == Version::V2).then_some(1), "what is echoed is kept");
        // the payload that goes on is the one that was signed
        let call = facilitator_request(&payment, &offer()).expect("a call");
        let sent = &call.payment_payload["payload"];
        assert_eq!(sent["authorization"]["from"], json!(checksummed(&buyer().address())));
        assert_eq!(*sent, payment.document["payload"], "{version:?}");
    }
}
